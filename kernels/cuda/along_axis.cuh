#pragma once
// A contiguous tensor seen as lines along one axis: [outer, size, inner]; and the order of its elements.
#include "base/tensor_view.h"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

struct AlongAxis {
  int64_t outer = 1, size = 1, inner = 1;

  AlongAxis(const TensorView& x, int64_t axis) {
    if (axis < 0) axis += x.rank;
    for (int i = 0; i < axis; ++i) outer *= x.dims[i];
    size = x.dims[axis];
    for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) inner *= x.dims[i];
  }
  __host__ __device__ int64_t lines() const { return outer * inner; }
  // First element of a line; the others follow `inner` apart.
  __device__ int64_t first(int64_t line) const { return line / inner * size * inner + line % inner; }
};

// A nan is above all numbers.
template <typename T>
__device__ inline bool above(T a, T b) {
  return a > b || (a != a && b == b);
}

// Calls fn with a zero of the type that elements are compared in.
template <typename Fn>
inline void visit_ordered(DType dtype, const Fn& fn) {
  if (dtype == DType::f64) return fn(double{});
  if (is_floating(dtype)) return fn(float{});
  if (dtype == DType::u64) return fn(uint64_t{});
  fn(int64_t{});
}

}  // namespace zeroplan::kernels_cuda
