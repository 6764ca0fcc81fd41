// What ThreadSanitizer adds: races are reported even when the result is right.
// Every case runs in a child process that stops at the first report.
#include <chrono>
#include <thread>

#include "cuda_host/launch.h"
#include "device_buffer.h"
#include "kernels.h"
#include "pipeline.h"

#ifdef __SANITIZE_THREAD__

extern "C" const char* __tsan_default_options() { return "halt_on_error=1:report_signal_unsafe=0"; }

namespace {

class RacesTest : public testing::Test {
 protected:
  void SetUp() override {
    cuda_host::reset();
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  void TearDown() override { cuda_host::reset(); }
};

void run(void (*kernel)(int*), int blocks = 1, int workers = 1) {
  cuda_host::settings().thread_order = cuda_host::ThreadOrder::Ascending;
  cuda_host::settings().block_workers = workers;
  const DeviceBuffer<int> x(std::vector<int>(256, 0));
  cuda_host::launch(nullptr, dim3(static_cast<unsigned>(blocks)), dim3(64), 0, kernel, x.get());
  cudaDeviceSynchronize();
}

// Right by luck: the writer of each cell runs before its reader.
__global__ void lucky_kernel(int* x) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  x[threadIdx.x] = threadIdx.x > 0 ? s[threadIdx.x - 1] : 0;
}
TEST_F(RacesTest, MissingSyncthreads) { EXPECT_DEATH(run(lucky_kernel), "data race"); }

__global__ void lucky_warp_kernel(int* x) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x >= 32) return;
  x[threadIdx.x] = threadIdx.x > 0 ? s[threadIdx.x - 1] : 0;
}
TEST_F(RacesTest, MissingSyncwarp) { EXPECT_DEATH(run(lucky_warp_kernel), "data race"); }

__global__ void plain_count_kernel(int* x) { x[0] += 1; }
TEST_F(RacesTest, MissingAtomic) { EXPECT_DEATH(run(plain_count_kernel), "data race"); }

// Different blocks write one cell; needs blocks on two OS threads to be seen.
__global__ void blocks_kernel(int* x) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1000; ++i) x[i % 16] = i;
  }
}
TEST_F(RacesTest, BlocksWriteTheSameCell) { EXPECT_DEATH(run(blocks_kernel, 64, 2), "data race"); }

// The barrier after the reads is missing in a double use of one buffer.
__global__ void reuse_kernel(int* x) {
  __shared__ int s[64];
  for (int round = 0; round < 2; ++round) {
    s[threadIdx.x] = round;
    __syncthreads();
    x[threadIdx.x] = s[63 - threadIdx.x];
  }
}
TEST_F(RacesTest, MissingBarrierBeforeReuse) { EXPECT_DEATH(run(reuse_kernel), "data race"); }

// No delays: the order is right by luck, the missing event is found all the same.
void missing_wait() {
  const std::vector<float> ones(100, 1.0F);
  example::two_streams(ones, ones, ones, false);
}
TEST_F(RacesTest, MissingEventWait) { EXPECT_DEATH(missing_wait(), "data race"); }

void missing_synchronize() {
  float* pinned = nullptr;
  cudaMallocHost(reinterpret_cast<void**>(&pinned), 400);
  const DeviceBuffer<float> d(std::vector<float>(100, 1.0F));
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaMemcpyAsync(pinned, d.get(), 400, cudaMemcpyDeviceToHost, s);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(pinned[7], 1.0F);
}
TEST_F(RacesTest, MissingStreamSynchronize) { EXPECT_DEATH(missing_synchronize(), "data race"); }

}  // namespace

#endif
