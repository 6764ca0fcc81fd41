// Streams, events, graphs, memory and injected faults.
#include <atomic>
#include <thread>

#include "device_buffer.h"
#include "kernels.h"
#include "pipeline.h"

namespace {

using StreamsTest = CudaHostTest;

const std::vector<float> ones(1000, 1.0F);

// How many of 20 seeds give a wrong result under random delays.
int wrong_results(bool with_wait) {
  int wrong = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    cuda_host::settings().seed = seed;
    cuda_host::settings().max_delay_us = 5000;
    const auto y = example::two_streams(ones, ones, ones, with_wait);
    wrong += y != std::vector<float>(ones.size(), 3.0F);
  }
  return wrong;
}

#ifndef __SANITIZE_THREAD__  // there it is a reported race: see races_test
TEST_F(StreamsTest, MissingWaitShows) {
  const int wrong = wrong_results(false);
  std::printf("wrong for %d of 20 seeds\n", wrong);
  EXPECT_GE(wrong, 2);
}
#endif
TEST_F(StreamsTest, EventWaitIsEnough) { EXPECT_EQ(wrong_results(true), 0); }

TEST_F(StreamsTest, GraphReplay) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    cuda_host::settings().seed = seed;
    // x -> 2 x + 2
    EXPECT_EQ(example::replay_graph(ones, 3), std::vector<float>(ones.size(), 22.0F));
  }
}

TEST_F(StreamsTest, UnjoinedCaptureIsRefused) {
  cudaStream_t a, b;
  cudaEvent_t fork;
  cudaGraph_t graph;
  const DeviceBuffer<float> x(ones);
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEventCreate(&fork);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaEventRecord(fork, a);
  cudaStreamWaitEvent(b, fork, 0);
  EXPECT_EQ(example::vector_add(b, x.get(), x.get(), x.get(), 1000), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(StreamsTest, ForbiddenCallsBreakACapture) {
  cudaStream_t a;
  cudaGraph_t graph;
  void* p = nullptr;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StreamsTest, LegacyStreamOrdersBlockingStreams) {
  cuda_host::settings().max_delay_us = 1000;
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  const DeviceBuffer<float> a(ones), x(1000), y(1000);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    cuda_host::settings().seed = seed;
    cudaMemsetAsync(x.get(), 0, 4000, blocking);
    example::vector_add(blocking, a.get(), a.get(), x.get(), 1000);
    example::vector_add(nullptr, x.get(), a.get(), y.get(), 1000);
    EXPECT_EQ(y.values()[999], 3.0F);
  }
}

TEST_F(StreamsTest, EventsReportProgressAndTime) {
  cudaEvent_t start, end, untimed;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
  cudaStream_t s;
  cudaStreamCreate(&s);
  std::atomic<bool> go{false};
  cudaEventRecord(start, s);
  cudaLaunchHostFunc(
      s,
      [](void* flag) {
        while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
      },
      &go);
  cudaEventRecord(end, s);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(s), cudaErrorNotReady);
  go = true;
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
  EXPECT_GE(ms, 0.0F);
  EXPECT_EQ(cudaEventElapsedTime(&ms, untimed, end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(end, reinterpret_cast<cudaStream_t>(&ms)), cudaErrorInvalidResourceHandle);
}

TEST_F(StreamsTest, MemoryLimitAndAccounting) {
  cuda_host::settings().device_memory = 1 << 20;
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, 700000), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&b, 700000), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(total - free, 700000U);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaFree(a), cudaErrorInvalidValue);
}

TEST_F(StreamsTest, CopiesCheckTheSide) {
  const DeviceBuffer<float> d(ones);
  std::vector<float> h(1001);
  EXPECT_EQ(cudaMemcpy(h.data(), d.get(), 4000, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(d.get(), h.data(), 4000, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(d.get(), h.data(), 4004, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(h.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(h.data(), d.get(), 4000, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(h[999], 1.0F);
}

TEST_F(StreamsTest, FreshMemoryIsNotZero) {
  const DeviceBuffer<float> d(4);
  EXPECT_NE(d.values()[0], d.values()[0]);  // NaN
}

TEST_F(StreamsTest, InjectedFaults) {
  void* p = nullptr;
  cuda_host::fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cuda_host::call_count("cudaMalloc"), 3U);
  cuda_host::fail_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
  const DeviceBuffer<float> d(ones);
  EXPECT_EQ(example::vector_add(nullptr, d.get(), d.get(), d.get(), 1000), cudaErrorLaunchOutOfResources);
}

TEST_F(StreamsTest, DevicesAreSeparate) {
  cuda_host::settings().device_count = 2;
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  cudaStream_t zero;
  cudaStreamCreate(&zero);
  float* d = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&d), 4000), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(example::vector_add(zero, d, d, d, 1000), cudaErrorInvalidResourceHandle);
  cuda_host::settings().print_faults = false;
  EXPECT_EQ(example::vector_add(nullptr, d, d, d, 1000), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress) << "no peer access";
  EXPECT_EQ(cudaSetDevice(0), cudaErrorIllegalAddress) << "sticky on device 1";
  EXPECT_EQ(cuda_host::reset(), 1U) << "cudaFree failed as well";
}

TEST_F(StreamsTest, HangBecomesAnError) {
  cuda_host::settings().hang_timeout_ms = 100;
  cuda_host::settings().print_faults = false;
  static std::atomic<bool> release{false};
  cudaLaunchHostFunc(
      nullptr,
      [](void*) {
        while (!release) std::this_thread::yield();
      },
      nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchTimeout);
  release = true;
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(StreamsTest, GuardTrapsHostAccess) {
  if (!cuda_host::guard_supported()) GTEST_SKIP() << "no memory protection keys here";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  cuda_host::settings().guard_memory = true;
  const DeviceBuffer<float> d(ones), x(1000);
  ASSERT_EQ(example::vector_add(nullptr, d.get(), d.get(), x.get(), 1000), cudaSuccess);
  EXPECT_EQ(x.values()[7], 2.0F);
  EXPECT_DEATH(
      {
        volatile float* p = x.get();
        p[0] = 1.0F;
      },
      "");
}
#endif

}  // namespace
