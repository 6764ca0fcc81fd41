// gather: rows of a table by index. gather_grad: adds rows back, in the order of the indices.
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_indices.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/space.h"
#include "kernels/cpu/strided_copy.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// table [outer, rows, inner], y [outer, count, inner]; all contiguous. indices [count] for all of outer, or [batch, count] where table and
// indices share axes: `outer` is batch times the rest, and `repeats` places of it read the same indices.
struct GatherShape {
  const int64_t axis, rows;
  int64_t outer = 1, repeats = 1, inner = 1, count = 0;
  const RowIndices indices;

  GatherShape(const TensorView& table, const TensorView& index_view, const Attributes& attributes)
      : axis(positive(attributes.get_int(Attr::axis), table.rank)), rows(table.dims[axis]), indices(index_view, rows) {
    const int64_t shared = attributes.has(Attr::axes) ? static_cast<int64_t>(attributes.get_ints(Attr::axes).size()) : 0;
    for (int i = 0; i < axis; ++i) outer *= table.dims[i];
    for (int64_t i = shared; i < axis; ++i) repeats *= table.dims[i];
    for (int i = static_cast<int>(axis) + 1; i < table.rank; ++i) inner *= table.dims[i];
    if (outer > 0) count = count_elements(index_view) / (outer / repeats);
  }
  static int64_t positive(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }
  int64_t first(int64_t o) const { return o / repeats * count; }  // number of the first index for place o
};

// One row of y after the other: [begin, end) of outer · count.
template <typename W>
void gather_rows(const GatherShape& shape, const W* table, W* y, int64_t begin, int64_t end) {
  int64_t o = begin / shape.count, k = begin % shape.count;
  const int64_t inner = shape.inner;
  for (int64_t i = begin; i < end; ++i) {
    const W* from = table + (o * shape.rows + shape.indices.row(shape.first(o) + k)) * inner;
    if (inner == 1)
      y[i] = *from;
    else
      std::memcpy(y + i * inner, from, static_cast<size_t>(inner) * sizeof(W));
    if (++k == shape.count) k = 0, ++o;
  }
}

// d [outer, rows, inner] zeroed, then the columns [begin, end) of dy [outer, count, inner] added row by row.
template <typename T>
void add_columns(const GatherShape& shape, const T* dy, T* d, int64_t o, int64_t begin, int64_t end) {
  T* table = d + o * shape.rows * shape.inner + begin;
  const bool whole = end - begin == shape.inner;
  const int64_t lines = whole ? 1 : shape.rows, length = whole ? shape.rows * shape.inner : end - begin;
  for (int64_t r = 0; r < lines; ++r) std::memset(table + r * shape.inner, 0, static_cast<size_t>(length) * sizeof(T));
  for (int64_t k = 0; k < shape.count; ++k) {
    const T* from = dy + (o * shape.count + k) * shape.inner + begin;
    T* to = table + shape.indices.row(shape.first(o) + k) * shape.inner;
    if (end - begin == 1)
      *to += *from;
    else
      for_lanes<T>(end - begin, [=](auto at) ZP_LAMBDA { at.store(to, at.load(to) + at.load(from)); });
  }
}

}  // namespace

void gather_kernel(const KernelArgs& args) {
  const TensorView &table = args.inputs[0], &y = args.outputs[0];
  const GatherShape shape(table, args.inputs[1], *args.attributes);
  visit_width(table.dtype, [&](auto zero) {
    using W = decltype(zero);
    parallel_ranges(args.threads, shape.outer * shape.count, 1, [&](int64_t begin, int64_t end) {
      gather_rows(shape, static_cast<const W*>(table.data), static_cast<W*>(y.data), begin, end);
    });
  });
}

// Cut along outer where there is enough of it, else by columns: each element adds up in the order of the indices either way.
void gather_grad_kernel(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &d = args.outputs[0];
  const GatherShape shape(d, args.inputs[1], *args.attributes);
  const bool by_outer = shape.outer >= args.threads;
  visit_floating(d.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = static_cast<const T*>(dy.data);
    T* to = static_cast<T*>(d.data);
    parallel_ranges(args.threads, by_outer ? shape.outer : shape.inner, by_outer ? 1 : kLanes, [&](int64_t begin, int64_t end) {
      const int64_t first = by_outer ? begin : 0, last = by_outer ? end : shape.outer;
      for (int64_t o = first; o < last; ++o) add_columns(shape, from, to, o, by_outer ? 0 : begin, by_outer ? shape.inner : end);
    });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
