#include "tests/cuda_kernels/device_call.h"

namespace zeroplan {

std::vector<TestDevice> test_devices() {
  return {{"cuda", [](OpKind op, KernelArgs& args, auto memory) { run_on_device(op, args, memory); }, DeviceKind::cuda}};
}

}  // namespace zeroplan
