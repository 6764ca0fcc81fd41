#include "runtime/cuda/sum_ranks.h"

#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"

namespace zeroplan {

namespace {

using kernels_cuda::for_items, kernels_cuda::widen, kernels_cuda::WideOf;

constexpr int64_t kMostBlocks = 1024;

// accumulator [elements]; of_rank[r] [first + elements] of T, which is widened before it is added.
template <typename T>
__global__ void fold(int64_t elements, WideOf<T>* accumulator, RankBuffers from, int64_t first, bool from_zero) {
  for_items(elements, [&](int64_t i) {
    WideOf<T> sum = from_zero ? WideOf<T>(0) : accumulator[i];
    for (int r = 0; r < from.count; ++r) sum = sum + widen(static_cast<const T*>(from.of_rank[r])[first + i]);
    accumulator[i] = sum;
  });
}

template <typename T>
__global__ void sum_everywhere(int64_t elements, RankBuffers data, int64_t first) {
  for_items(elements, [&](int64_t i) {
    T sum = static_cast<const T*>(data.of_rank[0])[first + i];
    for (int r = 1; r < data.count; ++r) sum = sum + static_cast<const T*>(data.of_rank[r])[first + i];
    for (int r = 0; r < data.count; ++r) static_cast<T*>(data.of_rank[r])[first + i] = sum;
  });
}

template <typename... P, typename... A>
void enqueue(cudaStream_t stream, int64_t elements, void (*kernel)(int64_t, P...), A... arguments) {
  if (elements == 0) return;
  const int64_t blocks = (elements + kernels_cuda::kBlock - 1) / kernels_cuda::kBlock;
  kernels_cuda::launch_on(stream, static_cast<unsigned>(std::min(blocks, kMostBlocks)), kernels_cuda::kBlock, 0, kernel, elements,
                          arguments...);
}

template <typename Fn>
void visit_addend(DType dtype, const Fn& fn) {
  if (dtype == DType::i64) return fn(int64_t{});
  kernels_cuda::visit_floating(dtype, fn);
}

}  // namespace

void enqueue_fold(cudaStream_t stream, void* accumulator, const RankBuffers& from, int64_t first, int64_t elements, DType dtype,
                  bool from_zero) {
  visit_addend(dtype, [&](auto zero) {
    using T = decltype(zero);
    enqueue(stream, elements, fold<T>, static_cast<WideOf<T>*>(accumulator), from, first, from_zero);
  });
}

void enqueue_sum_everywhere(cudaStream_t stream, const RankBuffers& data, int64_t first, int64_t elements, DType dtype) {
  visit_addend(dtype, [&](auto zero) {
    if constexpr (std::is_same_v<WideOf<decltype(zero)>, decltype(zero)>)
      enqueue(stream, elements, sum_everywhere<decltype(zero)>, data, first);
    else
      unhandled_dtype(dtype);
  });
}

}  // namespace zeroplan
