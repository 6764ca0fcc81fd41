#pragma once
#include "base/device_kind.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

bool is_for(const Plan& plan, DeviceKind device);
// Throws Error where the plan was made for another device.
void require_device(const Plan& plan, DeviceKind device);

}  // namespace zeroplan
