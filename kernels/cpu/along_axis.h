#pragma once
// A contiguous tensor seen as [outer, size, inner] around one axis.
#include "base/tensor_view.h"
#include "kernels/cpu/parallel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

struct AlongAxis {
  int64_t outer = 1, size = 1, inner = 1;

  AlongAxis(const TensorView& x, int64_t axis) {
    if (axis < 0) axis += x.rank;
    for (int i = 0; i < axis; ++i) outer *= x.dims[i];
    size = x.dims[axis];
    for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) inner *= x.dims[i];
  }
};

inline constexpr int64_t kAxisColumns = 64;  // neighbouring columns that are walked down together

// fn(outer place, first column, number of columns) for pieces of at most kAxisColumns columns.
template <typename Fn>
inline void for_column_pieces(const AlongAxis& a, int threads, const Fn& fn) {
  const int64_t pieces = (a.inner + kAxisColumns - 1) / kAxisColumns;
  parallel_for(threads, a.outer * pieces, [&](int64_t item) {
    const int64_t o = item / pieces, first = item % pieces * kAxisColumns, left = a.inner - first;
    fn(o, first, left < kAxisColumns ? left : kAxisColumns);
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
