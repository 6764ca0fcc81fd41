#pragma once
// The devices that a test program tests.
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace zeroplan {

struct DeviceMaker {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
};
std::vector<DeviceMaker> device_makers();  // each test program has its own

inline void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << maker.name; }

}  // namespace zeroplan
