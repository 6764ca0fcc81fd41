#include "runtime/plan/plan_device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

void require_device(const Plan& plan, DeviceKind device) {
  if (plan.header.device == device) return;
  throw Error(fmt::format("the plan is for device {}: it counts other scratch memory; compile it with --device {}",
                          device_kind_name(plan.header.device), device_kind_name(device)));
}

}  // namespace zeroplan
