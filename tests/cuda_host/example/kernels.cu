// Compiled unchanged by nvcc (sm_80, sm_90) and, through the shim, by g++.
#include <cuda_bf16.h>

#include "cuda_host/launch.h"
#include "kernels.h"

namespace example {

namespace {

constexpr int threads_per_block = 256;

int blocks_for(int n) { return (n + threads_per_block - 1) / threads_per_block; }

__global__ void add_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ sum, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) sum[i] = __ldg(a + i) + __ldg(b + i);
}

__global__ void __launch_bounds__(threads_per_block) sum_kernel(const float* x, float* total, int n) {
  __shared__ float partial[threads_per_block];
  float mine = 0.0F;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += static_cast<int>(gridDim.x * blockDim.x)) {
    mine += x[i];
  }
  partial[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = threads_per_block / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, partial[0]);
}

__device__ float warp_max(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
  }
  return value;
}

__device__ float warp_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xFFFFFFFFU, value, static_cast<unsigned>(offset));
  }
  return __shfl_sync(0xFFFFFFFFU, value, 0);
}

// One warp per row.
__global__ void softmax_kernel(const float* x, float* y, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  if (row >= rows) return;  // whole warps only
  const float* in = x + static_cast<long long>(row) * columns;
  float* out = y + static_cast<long long>(row) * columns;
  float largest = -INFINITY;
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += warpSize) largest = fmaxf(largest, in[c]);
  largest = warp_max(largest);
  float total = 0.0F;
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += warpSize) total += __expf(in[c] - largest);
  total = warp_sum(total);
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += warpSize) {
    out[c] = __fdividef(__expf(in[c] - largest), total);
  }
}

template <int Tile>
__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  CUDA_DYNAMIC_SHARED(float, shared);
  float* tile_a = shared;
  float* tile_b = shared + Tile * Tile;
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * Tile + y;
  const int column = static_cast<int>(blockIdx.x) * Tile + x;
  float total = 0.0F;
  for (int first = 0; first < k; first += Tile) {
    tile_a[y * Tile + x] = row < m && first + x < k ? a[row * k + first + x] : 0.0F;
    tile_b[y * Tile + x] = first + y < k && column < n ? b[(first + y) * n + column] : 0.0F;
    __syncthreads();
    for (int i = 0; i < Tile; ++i) total = fmaf(tile_a[y * Tile + i], tile_b[i * Tile + x], total);
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = total;
}

__global__ void histogram_kernel(const std::uint8_t* x, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (unsigned i = threadIdx.x; i < 256U; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(&local[x[i]], 1U);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256U; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

__global__ void bf16_kernel(const float4* x, const float* tail, __nv_bfloat16* y, int n) {
  const int group = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int first = 4 * group;
  if (first + 3 < n) {
    const float4 four = x[group];
    auto* out = reinterpret_cast<__nv_bfloat162*>(y + first);
    out[0] = __floats2bfloat162_rn(four.x, four.y);
    out[1] = __floats2bfloat162_rn(four.z, four.w);
  } else {
    for (int i = first; i < n; ++i) y[i] = __float2bfloat16(tail[i]);
  }
}

}  // namespace

cudaError_t vector_add(cudaStream_t stream, const float* a, const float* b, float* sum, int n) {
  return cuda_host::launch(stream, dim3(blocks_for(n)), dim3(threads_per_block), 0, add_kernel, a, b, sum, n);
}

cudaError_t block_sum(cudaStream_t stream, const float* x, float* total, int n) {
  const int blocks = blocks_for(n) < 64 ? blocks_for(n) : 64;
  return cuda_host::launch(stream, dim3(blocks), dim3(threads_per_block), 0, sum_kernel, x, total, n);
}

cudaError_t softmax_rows(cudaStream_t stream, const float* x, float* y, int rows, int columns) {
  return cuda_host::launch(stream, dim3((rows + 3) / 4), dim3(32, 4), 0, softmax_kernel, x, y, rows, columns);
}

cudaError_t matmul(cudaStream_t stream, const float* a, const float* b, float* c, int m, int n, int k) {
  constexpr int tile = 16;
  const dim3 grid((n + tile - 1) / tile, (m + tile - 1) / tile);
  return cuda_host::launch(stream, grid, dim3(tile, tile), 2 * tile * tile * sizeof(float), matmul_kernel<tile>, a, b, c, m, n, k);
}

cudaError_t histogram(cudaStream_t stream, const std::uint8_t* x, unsigned* bins, int n) {
  return cuda_host::launch(stream, dim3(8), dim3(threads_per_block), 0, histogram_kernel, x, bins, n);
}

cudaError_t to_bf16(cudaStream_t stream, const float* x, std::uint16_t* bits, int n) {
  return cuda_host::launch(stream, dim3(blocks_for((n + 3) / 4)), dim3(threads_per_block), 0, bf16_kernel,
                           reinterpret_cast<const float4*>(x), x, reinterpret_cast<__nv_bfloat16*>(bits), n);
}

}  // namespace example
