// What only the CPU's device does.
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "tests/device/devices.h"

namespace zeroplan {

std::vector<DeviceMaker> device_makers() {
  return {{"cpu", [] { return make_cpu_device(1); }}};
}

namespace {

TEST(CpuDevice, ComputeRunsOnTheIssuingThreadOthersDoNot) {
  const auto device = make_cpu_device(1);
  auto identify = [](void* p) { *static_cast<std::thread::id*>(p) = std::this_thread::get_id(); };
  auto compute = device->new_stream(StreamKind::compute), gather = device->new_stream(StreamKind::gather);
  std::thread::id on_compute, on_gather;
  compute->launch(identify, &on_compute);
  gather->launch(identify, &on_gather);
  gather->synchronize();
  EXPECT_EQ(on_compute, std::this_thread::get_id());
  EXPECT_NE(on_gather, std::this_thread::get_id());
}

TEST(CpuDevice, NamesItself) {
  EXPECT_NE(make_cpu_device(2)->properties().name.find("cpu"), std::string::npos);
  EXPECT_GT(make_cpu_device(2)->properties().memory_bytes, 1 << 20);
  EXPECT_TRUE(make_cpu_device(2)->properties().host);
  EXPECT_THROW(make_cpu_device(0), Error);
}

TEST(CpuDevice, MemoryStartsAtAPage) { EXPECT_EQ(reinterpret_cast<uintptr_t>(make_cpu_device(1)->alloc(100001)->data()) % 4096, 0u); }

}  // namespace
}  // namespace zeroplan
