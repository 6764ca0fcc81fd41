#include "tests/e2e_support/tested_device.h"

namespace zeroplan {

DeviceKind tested_device() { return DeviceKind::cpu; }

}  // namespace zeroplan
