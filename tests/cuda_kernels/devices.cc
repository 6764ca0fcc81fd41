#include "tests/cuda_kernels/device_call.h"

namespace zeroplan {

std::vector<TestDevice> test_devices() { return {{"cuda", run_on_device}}; }

}  // namespace zeroplan
