#include "runtime/plan/plan_device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

bool is_for(const Plan& plan, DeviceKind device) { return plan.header.device == device_kind_name(device); }

void require_device(const Plan& plan, DeviceKind device) {
  if (is_for(plan, device)) return;
  throw Error(fmt::format("the plan is for device {}: it counts other scratch memory; compile it with --device {}", plan.header.device,
                          device_kind_name(device)));
}

}  // namespace zeroplan
