#include "runtime/cuda/sum_ranks.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/cuda/errors.h"

namespace zeroplan {

namespace {

constexpr int kBlock = 256, kMostBlocks = 1024;

template <typename Fn>
__device__ void for_elements(int64_t elements, const Fn& fn) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) fn(i);
}

template <typename T>
__device__ T widen(T x) {
  return x;
}
__device__ float widen(__half x) { return __half2float(x); }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

// accumulator [elements]; of_rank[r] [first + elements] of From, which is widened before it is added.
template <typename T, typename From>
__global__ void fold(T* accumulator, RankBuffers from, int64_t first, int64_t elements, int contributors, bool from_zero) {
  for_elements(elements, [&](int64_t i) {
    T sum = from_zero ? T(0) : accumulator[i];
    for (int r = 0; r < contributors; ++r) sum = sum + widen(static_cast<const From*>(from.of_rank[r])[first + i]);
    accumulator[i] = sum;
  });
}

template <typename T>
__global__ void sum_everywhere(RankBuffers data, int64_t first, int64_t elements) {
  for_elements(elements, [&](int64_t i) {
    T sum = static_cast<const T*>(data.of_rank[0])[first + i];
    for (int r = 1; r < data.count; ++r) sum = sum + static_cast<const T*>(data.of_rank[r])[first + i];
    for (int r = 0; r < data.count; ++r) static_cast<T*>(data.of_rank[r])[first + i] = sum;
  });
}

template <typename... P, typename... A>
void enqueue(cudaStream_t stream, int64_t elements, void (*kernel)(P...), A... arguments) {
  if (elements == 0) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(std::min<int64_t>(kMostBlocks, (elements + kBlock - 1) / kBlock));
  config.blockDim = kBlock;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...), "cudaLaunchKernelEx");
}

template <typename Fn>
void visit_summable(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::f32: return fn(float{});
    case DType::f64: return fn(double{});
    case DType::i64: return fn(int64_t{});
    default: unhandled_dtype(dtype);
  }
}

}  // namespace

void enqueue_fold(cudaStream_t stream, void* accumulator, const RankBuffers& from, int64_t first, int64_t elements, DType dtype,
                  int contributors, bool from_zero) {
  const auto enqueue_as = [&](auto zero, auto addend) {
    using T = decltype(zero);
    enqueue(stream, elements, fold<T, decltype(addend)>, static_cast<T*>(accumulator), from, first, elements, contributors, from_zero);
  };
  if (dtype == DType::f16) return enqueue_as(float{}, __half{});
  if (dtype == DType::bf16) return enqueue_as(float{}, __nv_bfloat16{});
  visit_summable(dtype, [&](auto zero) { enqueue_as(zero, zero); });
}

void enqueue_sum_everywhere(cudaStream_t stream, const RankBuffers& data, int64_t first, int64_t elements, DType dtype) {
  visit_summable(dtype, [&](auto zero) { enqueue(stream, elements, sum_everywhere<decltype(zero)>, data, first, elements); });
}

}  // namespace zeroplan
