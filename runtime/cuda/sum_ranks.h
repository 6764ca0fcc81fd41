#pragma once
// Sums over ranks in rank order, as kernels. No fused multiply-add: the same bits as on the CPU (runtime/comm/fold.h).
#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/dtype.h"

namespace zeroplan {

inline constexpr int kMostBuffers = 64;

// Buffers of the ranks, device pointers; passed to kernels by value.
struct RankBuffers {
  void* of_rank[kMostBuffers] = {};
  int count = 0;
};

// accumulator[i] = ((accumulator[i], or +0 where from_zero) + of_rank[0][first + i]) + … over from.count ranks, which may be none.
// Ranks give elements of `dtype`, the accumulator is of wide_dtype(dtype).
void enqueue_fold(cudaStream_t stream, void* accumulator, const RankBuffers& from, int64_t first, int64_t elements, DType dtype,
                  bool from_zero);
// of_rank[r][first + i] = sum over all ranks, for every r.
void enqueue_sum_everywhere(cudaStream_t stream, const RankBuffers& data, int64_t first, int64_t elements, DType dtype);

}  // namespace zeroplan
