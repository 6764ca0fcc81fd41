// What only a GPU's device does.
#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/device/devices.h"

namespace zeroplan {

std::vector<DeviceMaker> device_makers() {
  return {{"cuda", [] { return make_cuda_device(0); }}};
}

namespace {

TEST(CudaDevice, NamesItself) {
  const DeviceProperties properties = make_cuda_device(0)->properties();
  EXPECT_NE(properties.name.find("cuda:0"), std::string::npos);
  EXPECT_NE(properties.name.find("sm_"), std::string::npos);
  EXPECT_FALSE(properties.host);
}

TEST(CudaDevice, OneThatIsNotThereIsAnError) {
  EXPECT_THROW(make_cuda_device(cuda_devices()), Error);
  EXPECT_THROW(make_cuda_device(-1), Error);
}

TEST(CudaDevice, MemoryStartsAtABorderOfVectorLoads) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(make_cuda_device(0)->alloc(1 + i)->data()) % 256, 0u);
}

}  // namespace
}  // namespace zeroplan
