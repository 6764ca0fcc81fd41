#pragma once
#include "runtime/plan/plan.h"

namespace zeroplan {

// Throws Error where the plan was made for another device.
void require_device(const Plan& plan, DeviceKind device);

}  // namespace zeroplan
