// One deliberate bug of each kind, and what the emulation says about it.
#include <algorithm>
#include <numeric>

#include "cuda_host/launch.h"
#include "device_buffer.h"

namespace {

class BugsTest : public testing::Test {
 protected:
  void SetUp() override {
    cuda_host::reset();
    cuda_host::settings().print_faults = false;
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  void TearDown() override { cuda_host::reset(); }

  template <class... Params, class... Args>
  static std::string fault_of(dim3 block, void (*kernel)(Params...), Args... args) {
    EXPECT_EQ(cuda_host::launch(nullptr, dim3(2), block, 64, kernel, args...), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "must be sticky";
    return cuda_host::last_fault();
  }
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

__global__ void early_exit_kernel(int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();
}
TEST_F(BugsTest, ExitedThreadsAtABarrier) {
  const std::string fault = fault_of(dim3(64), early_exit_kernel, 40);
  EXPECT_CONTAINS(fault, "threads 40-63 have exited");
  EXPECT_CONTAINS(fault, "threads 0-39 wait at __syncthreads (bugs_test.cu:");
  EXPECT_CONTAINS(fault, "early_exit_kernel");
}
TEST_F(BugsTest, ExitedThreadsMayBeAllowed) {
  cuda_host::settings().strict_barriers = false;
  EXPECT_EQ(cuda_host::launch(nullptr, dim3(2), dim3(64), 0, early_exit_kernel, 40), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
TEST_F(BugsTest, ThreadsAtDifferentBarriers) { EXPECT_CONTAINS(fault_of(dim3(64), two_barriers_kernel), "divergent barrier"); }

__global__ void divergent_shuffle_kernel(int* out) {
  int v = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 16) {
    v = __shfl_xor_sync(0xFFFFFFFFU, v, 1);
  } else {
    v = __shfl_down_sync(0xFFFFFFFFU, v, 1);
  }
  out[threadIdx.x] = v;
}
TEST_F(BugsTest, DivergentShuffle) {
  const DeviceBuffer<int> out(32);
  EXPECT_CONTAINS(fault_of(dim3(32), divergent_shuffle_kernel, out.get()), "divergent warp operation");
}

__global__ void lane_not_in_mask_kernel(int* out) { out[threadIdx.x] = __shfl_sync(0xFFFFU, 1, 0); }
TEST_F(BugsTest, MaskLacksTheCaller) {
  const DeviceBuffer<int> out(32);
  EXPECT_CONTAINS(fault_of(dim3(32), lane_not_in_mask_kernel, out.get()), "mask lacks the calling lane");
}

__global__ void barrier_and_shuffle_kernel(int* out) {
  if (threadIdx.x < 32) {
    out[threadIdx.x] = __shfl_sync(0xFFFFFFFFU, 1, 0);
    if (threadIdx.x == 3) __syncwarp(0xFFFFFFFFU);  // the other lanes never come
  }
  __syncthreads();
}
TEST_F(BugsTest, DeadlockInABlock) {
  const DeviceBuffer<int> out(32);
  const std::string fault = fault_of(dim3(64), barrier_and_shuffle_kernel, out.get());
  EXPECT_CONTAINS(fault, "threads 3 wait at __syncwarp");
  EXPECT_CONTAINS(fault, "threads 0-2,4-63 wait at __syncthreads");
}

__global__ void spin_kernel(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}
TEST_F(BugsTest, SpinOnAFlagNobodySets) {
  cuda_host::settings().block_timeout_ms = 100;
  const DeviceBuffer<int> flag(std::vector<int>{0});
  EXPECT_CONTAINS(fault_of(dim3(32), spin_kernel, flag.get()), "spins");
}

__global__ void lock_kernel(int* lock, int* total) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *total += 1;
  __threadfence();
  atomicExch(lock, 0);
}
TEST_F(BugsTest, SpinLocksWork) {
  const DeviceBuffer<int> lock(std::vector<int>{0}), total(std::vector<int>{0});
  EXPECT_EQ(cuda_host::launch(nullptr, dim3(4), dim3(64), 0, lock_kernel, lock.get(), total.get()), cudaSuccess);
  EXPECT_EQ(total.values()[0], 256);
}

__global__ void trap_kernel() {
  if (threadIdx.x == 5) __trap();
}
TEST_F(BugsTest, TrapNamesTheThread) { EXPECT_CONTAINS(fault_of(dim3(32), trap_kernel), "thread (5,0,0)"); }

// Reverses a block; the barrier between writing and reading is missing.
template <bool Correct>
__global__ void reverse_kernel(const int* in, int* out) {
  __shared__ int tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  if (Correct) __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}

template <bool Correct>
int wrong_reversals() {
  std::vector<int> in(128), expected(128);
  int wrong = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    cuda_host::settings().seed = seed;
    std::iota(in.begin(), in.end(), static_cast<int>(1000 * seed));
    std::reverse_copy(in.begin(), in.end(), expected.begin());
    const DeviceBuffer<int> d(in), r(128);
    EXPECT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(128), 0, reverse_kernel<Correct>, d.get(), r.get()), cudaSuccess);
    wrong += r.values() != expected;
  }
  return wrong;
}
#ifndef __SANITIZE_THREAD__
TEST_F(BugsTest, MissingSyncthreadsGivesWrongResults) { EXPECT_EQ(wrong_reversals<false>(), 20); }
#endif
TEST_F(BugsTest, SyncthreadsIsEnough) { EXPECT_EQ(wrong_reversals<true>(), 0); }

#ifndef __SANITIZE_THREAD__
// Warp-synchronous code of the Kepler age: no __syncwarp between steps.
__global__ void old_warp_sum_kernel(const int* in, int* out) {
  __shared__ volatile int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  s[threadIdx.x + 32] = 0;
  for (unsigned half = 16; half > 0; half /= 2) s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + half];
  if (threadIdx.x == 0) *out = s[0];
}
TEST_F(BugsTest, MissingSyncwarpGivesWrongResults) {
  int wrong = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    cuda_host::settings().seed = seed;
    const DeviceBuffer<int> in(std::vector<int>(32, 1)), out(1);
    EXPECT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(32), 0, old_warp_sum_kernel, in.get(), out.get()), cudaSuccess);
    wrong += out.values()[0] != 32;
  }
  EXPECT_GE(wrong, 8);
}
#endif

// Each block needs the result of the one before it.
__global__ void chain_kernel(int* x) {
  if (threadIdx.x == 0) x[blockIdx.x + 1] = x[blockIdx.x] + 1;
}
TEST_F(BugsTest, BlockOrderIsNotAscending) {
  const DeviceBuffer<int> x(std::vector<int>(17, 0));
  EXPECT_EQ(cuda_host::launch(nullptr, dim3(16), dim3(32), 0, chain_kernel, x.get()), cudaSuccess);
  EXPECT_NE(x.values()[16], 16);
}

__global__ void write_kernel(float* x, int i) { x[i] = 1.0F; }
TEST_F(BugsTest, HostPointerArgument) {
  float host[32] = {};
  EXPECT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(1), 0, write_kernel, host, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_CONTAINS(cuda_host::last_fault(), "kernel argument 0");
}

__global__ void dynamic_kernel() {
  CUDA_DYNAMIC_SHARED(float, s);
  s[threadIdx.x] = 1.0F;
}
TEST_F(BugsTest, LaunchLimits) {
  auto launch = [](dim3 grid, dim3 block, std::size_t shared) { return cuda_host::launch(nullptr, grid, block, shared, dynamic_kernel); };
  EXPECT_EQ(launch(dim3(1), dim3(1025), 8192), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(0), dim3(32), 128), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 65536), dim3(32), 128), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1), dim3(32), 100 * 1024), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024), cudaSuccess);
  EXPECT_EQ(launch(dim3(1), dim3(32), 100 * 1024), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

#ifdef __SANITIZE_ADDRESS__
void overrun_global() {
  const DeviceBuffer<float> x(32);
  cuda_host::launch(nullptr, dim3(1), dim3(1), 0, write_kernel, x.get(), 32);
  cudaDeviceSynchronize();
}
void overrun_dynamic_shared() {
  cuda_host::launch(nullptr, dim3(1), dim3(33), 32 * sizeof(float), dynamic_kernel);
  cudaDeviceSynchronize();
}
__global__ void static_overrun_kernel(int i, int* out) {
  __shared__ int s[32];
  s[static_cast<int>(threadIdx.x) + i] = 1;
  out[threadIdx.x] = s[threadIdx.x];
}
void overrun_static_shared() {
  const DeviceBuffer<int> out(32);
  cuda_host::launch(nullptr, dim3(1), dim3(32), 0, static_overrun_kernel, 1, out.get());
  cudaDeviceSynchronize();
}
void use_after_free() {
  float* x = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&x), 64);
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaFreeAsync(x, s);
  cuda_host::launch(s, dim3(1), dim3(1), 0, write_kernel, x, 0);
  cudaStreamSynchronize(s);
}
TEST_F(BugsTest, OutOfBoundsGlobal) { EXPECT_DEATH(overrun_global(), "heap-buffer-overflow"); }
TEST_F(BugsTest, OutOfBoundsDynamicShared) { EXPECT_DEATH(overrun_dynamic_shared(), "heap-buffer-overflow"); }
TEST_F(BugsTest, OutOfBoundsStaticShared) { EXPECT_DEATH(overrun_static_shared(), "out of bounds"); }
TEST_F(BugsTest, UseAfterFreeAsync) { EXPECT_DEATH(use_after_free(), "heap-use-after-free"); }
#endif

}  // namespace
