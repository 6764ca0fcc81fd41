// Device built-ins against straightforward host loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>

#include "cuda_host/launch.h"
#include "device_buffer.h"

namespace {

using FeaturesTest = CudaHostTest;

__global__ void index_kernel(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned size = blockDim.x * blockDim.y * blockDim.z;
  out[block * size + thread] += block * size + thread;
}
TEST_F(FeaturesTest, ThreeDimensionalIndices) {
  const DeviceBuffer<unsigned> out(std::vector<unsigned>(2 * 3 * 4 * 5 * 3 * 2, 0));
  ASSERT_EQ(cuda_host::launch(nullptr, dim3(2, 3, 4), dim3(5, 3, 2), 0, index_kernel, out.get()), cudaSuccess);
  const auto values = out.values();
  for (unsigned i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i);
}

struct Lanes {
  int up, down, xored, broadcast, any, all, sum;
  unsigned ballot, same;
  double wide;
};
__global__ void warp_kernel(Lanes* out, int width) {
  const int lane = static_cast<int>(threadIdx.x % warpSize);
  const unsigned full = 0xFFFFFFFFU;
  Lanes& l = out[threadIdx.x];
  l.up = __shfl_up_sync(full, lane, 3, width);
  l.down = __shfl_down_sync(full, lane, 3, width);
  l.xored = __shfl_xor_sync(full, lane, 5, width);
  l.broadcast = __shfl_sync(full, lane, 9, width);
  l.ballot = __ballot_sync(full, lane % 3 == 0);
  l.any = __any_sync(full, lane == 7);
  l.all = __all_sync(full, lane < 31);
  l.same = __match_any_sync(full, lane / 4);
  l.sum = __reduce_add_sync(full, lane - 10);
  l.wide = __shfl_xor_sync(full, lane + 0.5, 1);
}
TEST_F(FeaturesTest, WarpOperations) {
  for (const int width : {32, 16, 8}) {
    const DeviceBuffer<Lanes> out(64);
    ASSERT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(64), 0, warp_kernel, out.get(), width), cudaSuccess);
    const auto values = out.values();
    for (int t = 0; t < 64; ++t) {
      const Lanes& l = values[static_cast<std::size_t>(t)];
      const int lane = t % 32, base = lane / width * width;
      EXPECT_EQ(l.up, lane - base >= 3 ? lane - 3 : lane);
      EXPECT_EQ(l.down, lane + 3 < base + width ? lane + 3 : lane);
      EXPECT_EQ(l.xored, lane ^ 5);
      EXPECT_EQ(l.broadcast, base + 9 % width);
      EXPECT_EQ(l.ballot, 0x49249249U);
      EXPECT_EQ(l.any, 1);
      EXPECT_EQ(l.all, 0);
      EXPECT_EQ(l.same, 0xFU << (lane / 4 * 4));
      EXPECT_EQ(l.sum, 496 - 320);
      EXPECT_EQ(l.wide, (lane ^ 1) + 0.5);
    }
  }
}

// Half warps with their own masks, and a last warp of 8 lanes.
__global__ void partial_kernel(int* out) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned mask = lane < 16 ? 0x0000FFFFU : 0xFFFF0000U;
  int value = 1;
  for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor_sync(mask, value, offset);
  if (lane < 16) value = __shfl_sync(0x0000FFFFU, value, 0);
  out[threadIdx.x] = value + __syncthreads_count(lane == 0);
}
TEST_F(FeaturesTest, PartialMasks) {
  const DeviceBuffer<int> out(64);
  ASSERT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(64), 0, partial_kernel, out.get()), cudaSuccess);
  EXPECT_EQ(out.values(), std::vector<int>(64, 18));
}
__global__ void short_warp_kernel(int* out) {
  out[threadIdx.x] = static_cast<int>(__ballot_sync(0xFFFFFFFFU, 1)) + static_cast<int>(__activemask());
}
TEST_F(FeaturesTest, LastWarpMayBeShort) {
  const DeviceBuffer<int> out(8);
  ASSERT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(8), 0, short_warp_kernel, out.get()), cudaSuccess);
  EXPECT_EQ(out.values(), std::vector<int>(8, 510));
}

#ifndef __SANITIZE_THREAD__  // the plain read before atomicCAS is a race by C++ rules
struct Counters {
  float f;
  double d;
  int i, largest, smallest, exchanged;
  unsigned u, wrapped;
  unsigned long long ull;
};
__global__ void atomic_kernel(Counters* c) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&c->f, 0.5F);
  atomicAdd(&c->d, 0.25);
  atomicAdd(&c->i, -1);
  atomicAdd(&c->u, 2);
  atomicAdd(&c->ull, 3ULL);
  atomicMax(&c->largest, t);
  atomicMin(&c->smallest, -t);
  atomicInc(&c->wrapped, 9);
  int seen = c->exchanged, assumed;
  do {
    assumed = seen;
    seen = atomicCAS(&c->exchanged, assumed, assumed + 1);
  } while (seen != assumed);
}
TEST_F(FeaturesTest, Atomics) {
  cuda_host::settings().block_workers = 2;
  const DeviceBuffer<Counters> c(std::vector<Counters>(1, Counters{}));
  ASSERT_EQ(cuda_host::launch(nullptr, dim3(8), dim3(64), 0, atomic_kernel, c.get()), cudaSuccess);
  const Counters r = c.values()[0];
  EXPECT_EQ(r.f, 256.0F);
  EXPECT_EQ(r.d, 128.0);
  EXPECT_EQ(r.i, -512);
  EXPECT_EQ(r.u, 1024U);
  EXPECT_EQ(r.ull, 1536ULL);
  EXPECT_EQ(r.largest, 511);
  EXPECT_EQ(r.smallest, -511);
  EXPECT_EQ(r.exchanged, 512);
  EXPECT_EQ(r.wrapped, 2U);
}
#endif

template <class T>
__global__ void half_kernel(const T* x, float* y, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  const T a = __ldg(x + i);
  T b = a * a + T(0.5F);
  b += __hfma(a, a, a);
  b = __hmax(b, hsqrt(b));
  y[i] = static_cast<float>(b) + static_cast<float>(__shfl_xor_sync(0xFFFFFFFFU, hexp(a), 0));
}
template <class T>
void check_half(float tolerance) {
  std::vector<T> x;
  for (int i = 0; i < 32; ++i) x.push_back(T(static_cast<float>(i) / 32.0F));
  const DeviceBuffer<T> dx(x);
  const DeviceBuffer<float> dy(32);
  ASSERT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(32), 0, half_kernel<T>, dx.get(), dy.get(), 32), cudaSuccess);
  const auto y = dy.values();
  for (std::size_t i = 0; i < 32; ++i) {
    const double a = static_cast<double>(i) / 32, b = 2 * a * a + 0.5 + a;
    EXPECT_NEAR(y[i], std::max(b, std::sqrt(b)) + std::exp(a), tolerance);
  }
}
TEST_F(FeaturesTest, Half) { check_half<__half>(0.01F); }
TEST_F(FeaturesTest, Bfloat16) { check_half<__nv_bfloat16>(0.08F); }

__device__ float scale_on_device = 2.0F;
__constant__ float table[4];
__global__ void symbol_kernel(float4* x) {
  float4 v = x[threadIdx.x];
  v.x = __fdividef(v.x, scale_on_device) + table[threadIdx.x % 4];
  v.y = rsqrtf(fmaxf(v.y, 4.0F));
  v.z = __saturatef(v.z) + static_cast<float>(max(1, 2) + min(3U, 4U));
  v.w = __int_as_float(__float_as_int(v.w)) + static_cast<float>(__popc(7U) + __clz(1) + __ffs(8));
  x[threadIdx.x] = v;
}
TEST_F(FeaturesTest, SymbolsAndVectors) {
  const float values[4] = {10, 20, 30, 40};
  ASSERT_EQ(cudaMemcpyToSymbol(table, values, sizeof(values)), cudaSuccess);
  const DeviceBuffer<float4> x(std::vector<float4>(8, make_float4(1, 2, 3, 4)));
  ASSERT_EQ(cuda_host::launch(nullptr, dim3(1), dim3(8), 0, symbol_kernel, x.get()), cudaSuccess);
  const float4 r = x.values()[5];
  EXPECT_EQ(r.x, 20.5F);
  EXPECT_EQ(r.y, 0.5F);
  EXPECT_EQ(r.z, 6.0F);
  EXPECT_EQ(r.w, 42.0F);
}

__global__ void store_kernel(int* x, int value) { x[threadIdx.x] = value; }
TEST_F(FeaturesTest, EveryLaunchCall) {
  const DeviceBuffer<int> x(4);
  int* p = x.get();
  int value = 7;
  void* args[] = {&p, &value};
  ASSERT_EQ(cudaLaunchKernel(store_kernel, dim3(1), dim3(4), args), cudaSuccess);
  EXPECT_EQ(x.values()[3], 7);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(4);
  ASSERT_EQ(cudaLaunchKernelEx(&config, store_kernel, p, 8), cudaSuccess);
  EXPECT_EQ(x.values()[3], 8);
  int blocks = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store_kernel, 256, 0), cudaSuccess);
  EXPECT_EQ(blocks, 8);
}

}  // namespace
