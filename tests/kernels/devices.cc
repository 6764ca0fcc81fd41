#include "tests/kernels/runner.h"

namespace zeroplan {

std::vector<TestDevice> test_devices() {
  std::vector<TestDevice> devices;
  for (const std::string& set : instruction_sets()) devices.push_back(cpu_device(set));
  return devices;
}

}  // namespace zeroplan
