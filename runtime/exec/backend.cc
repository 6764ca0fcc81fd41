#include "runtime/exec/backend.h"

#include <fmt/format.h>

#include "base/device_kind.h"
#include "base/error.h"

namespace zeroplan {

Backend make_cpu_backend(const Plan& plan, std::chrono::milliseconds deadline) {
  if (plan.header.device != device_kind_name(DeviceKind::cpu))
    throw Error(fmt::format("the plan is for device {}: it counts other scratch memory; compile it with --device cpu", plan.header.device));
  prepare_cpu_kernels();
  const int n = plan.header.ranks;
  const std::shared_ptr<Device> device = make_cpu_device(plan.header.threads);
  auto gather = make_local_communicators(n, deadline), reduce = make_local_communicators(n, deadline);
  Backend backend;
  for (int r = 0; r < n; ++r) backend.ranks.push_back({r, device, std::move(gather[r]), std::move(reduce[r])});
  return backend;
}

}  // namespace zeroplan
