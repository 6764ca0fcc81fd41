#include "runtime/exec/backend.h"
#include "runtime/plan/plan_device.h"

namespace zeroplan {

Backend make_cpu_backend(const Plan& plan, std::chrono::milliseconds deadline) {
  require_device(plan, DeviceKind::cpu);
  prepare_cpu_kernels();
  const int n = plan.header.ranks;
  const std::shared_ptr<Device> device = make_cpu_device(plan.header.threads);
  auto gather = make_local_communicators(n, deadline), reduce = make_local_communicators(n, deadline);
  Backend backend;
  for (int r = 0; r < n; ++r) backend.ranks.push_back({r, device, std::move(gather[r]), std::move(reduce[r])});
  return backend;
}

}  // namespace zeroplan
