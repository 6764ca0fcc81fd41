// gather: rows of a table by index. gather_grad: adds rows back, in the order of the indices.
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/space.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/failures.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// table [outer, rows, inner], indices [count], y [outer, count, inner]; all contiguous.
struct GatherShape {
  int64_t outer = 1, rows = 0, inner = 1, count = 0;
  const TensorView& indices;

  GatherShape(const TensorView& table, const TensorView& index_view, int64_t axis) : indices(index_view) {
    if (axis < 0) axis += table.rank;
    for (int i = 0; i < axis; ++i) outer *= table.dims[i];
    for (int i = static_cast<int>(axis) + 1; i < table.rank; ++i) inner *= table.dims[i];
    rows = table.dims[axis];
    count = count_elements(index_view);
    for (int64_t k = 0; k < count; ++k) check_index(k);
  }
  int64_t given(int64_t k) const {
    return indices.dtype == DType::i32 ? static_cast<const int32_t*>(indices.data)[k] : static_cast<const int64_t*>(indices.data)[k];
  }
  int64_t row(int64_t k) const {
    const int64_t i = given(k);
    return i < 0 ? i + rows : i;
  }
  void check_index(int64_t k) const {
    if (row(k) < 0 || row(k) >= rows) index_outside_table(given(k), k, rows);
  }
};

// Single elements, as a pool's gradient scatters them.
template <typename T>
void add_elements(const GatherShape& shape, const T* dy, T* d) {
  for (int64_t o = 0; o < shape.outer; ++o) {
    T* table = d + o * shape.rows;
    std::memset(table, 0, static_cast<size_t>(shape.rows) * sizeof(T));
    for (int64_t k = 0; k < shape.count; ++k) table[shape.row(k)] += dy[o * shape.count + k];
  }
}

// d [outer, rows, inner] zeroed, then the columns [begin, end) of dy [outer, count, inner] added row by row.
template <typename T>
void add_columns(const GatherShape& shape, const T* dy, T* d, int64_t begin, int64_t end) {
  for (int64_t o = 0; o < shape.outer; ++o) {
    T* table = d + o * shape.rows * shape.inner + begin;
    for (int64_t r = 0; r < shape.rows; ++r) std::memset(table + r * shape.inner, 0, static_cast<size_t>(end - begin) * sizeof(T));
    for (int64_t k = 0; k < shape.count; ++k) {
      const T* from = dy + (o * shape.count + k) * shape.inner + begin;
      T* to = table + shape.row(k) * shape.inner;
      for_lanes<T>(end - begin, [=](auto at) ZP_LAMBDA { at.store(to, at.load(to) + at.load(from)); });
    }
  }
}

}  // namespace

void gather_kernel(const KernelArgs& args) {
  const TensorView &table = args.inputs[0], &y = args.outputs[0];
  const GatherShape shape(table, args.inputs[1], args.attributes->get_int(Attr::axis));
  visit_width(table.dtype, [&](auto zero) {
    using W = decltype(zero);
    parallel_ranges(args.threads, shape.outer * shape.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / shape.count, row = shape.row(i % shape.count);
        std::memcpy(static_cast<W*>(y.data) + i * shape.inner, static_cast<const W*>(table.data) + (o * shape.rows + row) * shape.inner,
                    static_cast<size_t>(shape.inner) * sizeof(W));
      }
    });
  });
}

void gather_grad_kernel(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &d = args.outputs[0];
  const GatherShape shape(d, args.inputs[1], args.attributes->get_int(Attr::axis));
  visit_floating(d.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (shape.inner == 1) return add_elements(shape, static_cast<const T*>(dy.data), static_cast<T*>(d.data));
    parallel_ranges(args.threads, shape.inner, kLanes, [&](int64_t begin, int64_t end) {
      add_columns(shape, static_cast<const T*>(dy.data), static_cast<T*>(d.data), begin, end);
    });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
