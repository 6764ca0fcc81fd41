#pragma once
#include "base/device_kind.h"

namespace zeroplan {

// What the plans of a test program are compiled for; each test program has its own answer.
DeviceKind tested_device();

}  // namespace zeroplan
