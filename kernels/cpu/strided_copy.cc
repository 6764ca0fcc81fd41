#include "kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/space.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kTransposeTile = 32;

// to[i·to_stride] = from[i·from_stride]
template <typename W>
void copy_run(const W* from, int64_t from_stride, W* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1)
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(W));
  else
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
}

// to[r·to_ld + c] = from[c·from_ld + r], tile by tile.
template <typename W>
void transpose(const W* from, int64_t from_ld, W* to, int64_t to_ld, int64_t rows, int64_t columns) {
  for (int64_t r0 = 0; r0 < rows; r0 += kTransposeTile) {
    const int64_t r1 = std::min(rows, r0 + kTransposeTile);
    for (int64_t c0 = 0; c0 < columns; c0 += kTransposeTile) {
      const int64_t c1 = std::min(columns, c0 + kTransposeTile);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) to[r * to_ld + c] = from[c * from_ld + r];
      }
    }
  }
}

// Axis that is contiguous in `from` while the last one is contiguous in `to`; -1 where there is none.
int transposed_axis(const Space& s) {
  if (s.inner_stride(1) != 1 || s.inner_stride(0) == 1) return -1;
  for (int axis = 0; axis + 1 < s.rank; ++axis) {
    if (s.strides[0][axis] == 1) return axis;
  }
  return -1;
}

template <typename W>
void copy_transposed(Space s, int axis, const W* from, W* to, int threads) {
  const int64_t rows = s.dims[axis], to_ld = s.strides[1][axis], from_ld = s.inner_stride(0), columns = s.inner();
  for (int i = axis; i + 2 < s.rank; ++i) {  // takes the axis out of the outer ones
    s.dims[i] = s.dims[i + 1];
    for (int o = 0; o < 2; ++o) s.strides[o][i] = s.strides[o][i + 1];
  }
  s.dims[s.rank - 2] = columns;
  --s.rank;
  const int64_t stripes = (rows + kTransposeTile - 1) / kTransposeTile;
  parallel_for(threads, s.outer() * stripes, [&](int64_t item) {
    const OuterIndex index(s, item / stripes);
    const int64_t first = item % stripes * kTransposeTile, count = std::min(kTransposeTile, rows - first);
    transpose(from + index.offset(0) + first, from_ld, to + index.offset(1) + first * to_ld, to_ld, count, columns);
  });
}

template <typename W>
void copy_rows(const Space& s, const W* from, W* to, int threads) {
  constexpr int64_t kPiece = 16384;
  const int64_t inner = s.inner(), pieces = (inner + kPiece - 1) / kPiece;
  parallel_ranges(threads, s.outer() * pieces, 1, [&](int64_t begin, int64_t end) {
    OuterIndex index(s, begin / pieces);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t start = item % pieces * kPiece, count = std::min(kPiece, inner - start);
      copy_run(from + index.offset(0) + start * s.inner_stride(0), s.inner_stride(0), to + index.offset(1) + start * s.inner_stride(1),
               s.inner_stride(1), count);
      if (item % pieces == pieces - 1) index.next();
    }
  });
}

}  // namespace

void copy_strided(const TensorView& from, const TensorView& to, int threads) {
  if (count_elements(to) == 0) return;
  const TensorView* views[] = {&from, &to};
  const Space space = make_space(to, views, 2);
  visit_width(to.dtype, [&](auto zero) {
    using W = decltype(zero);
    const int axis = transposed_axis(space);
    if (axis >= 0)
      copy_transposed(space, axis, static_cast<const W*>(from.data), static_cast<W*>(to.data), threads);
    else
      copy_rows(space, static_cast<const W*>(from.data), static_cast<W*>(to.data), threads);
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
