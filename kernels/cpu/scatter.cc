// scatter: rows of updates written into, added to or otherwise joined with rows of the data, in the order of the indices.
#include <cstring>
#include <type_traits>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_indices.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/space.h"
#include "kernels/cpu/strided_copy.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// data and y [batch, rows, inner], indices [batch, count], updates [batch, count, inner]; all contiguous.
struct ScatterShape {
  const int axis;
  const int64_t rows, count;
  int64_t batch = 1, inner = 1;
  const RowIndices indices;

  ScatterShape(const TensorView& data, const TensorView& index_view)
      : axis(index_view.rank - 1), rows(data.dims[axis]), count(index_view.dims[axis]), indices(index_view, rows) {
    for (int i = 0; i < axis; ++i) batch *= data.dims[i];
    for (int i = axis + 1; i < data.rank; ++i) inner *= data.dims[i];
  }
};

struct Write {
  template <typename T>
  static T join(T, T update) {
    return update;
  }
};
struct Add {
  template <typename T>
  static T join(T old, T update) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(update));
    else
      return old + update;
  }
};
struct Multiply {
  template <typename T>
  static T join(T old, T update) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) * static_cast<std::make_unsigned_t<T>>(update));
    else
      return old * update;
  }
};
// A nan wins.
struct Largest {
  template <typename T>
  static T join(T old, T update) {
    return update > old || update != update ? (old != old ? old : update) : old;
  }
};
struct Smallest {
  template <typename T>
  static T join(T old, T update) {
    return update < old || update != update ? (old != old ? old : update) : old;
  }
};

// The columns [begin, end) of batch b.
template <typename Op, typename T>
void scatter_columns(const ScatterShape& s, const T* data, const T* updates, T* y, int64_t b, int64_t begin, int64_t end) {
  const int64_t inner = s.inner;
  const size_t bytes = static_cast<size_t>(end - begin) * sizeof(T);
  if (data != y)
    for (int64_t r = b * s.rows; r < (b + 1) * s.rows; ++r) std::memcpy(y + r * inner + begin, data + r * inner + begin, bytes);
  for (int64_t k = b * s.count; k < (b + 1) * s.count; ++k) {
    const T* from = updates + k * inner;
    T* to = y + (b * s.rows + s.indices.row(k)) * inner;
    for (int64_t i = begin; i < end; ++i) to[i] = Op::join(to[i], from[i]);
  }
}

// Cut along the batch where there is enough of it, else by columns: each element is joined in the order of the indices either way.
template <typename Op, typename T>
void run(const KernelArgs& args, const ScatterShape& s) {
  const T *data = static_cast<const T*>(args.inputs[0].data), *updates = static_cast<const T*>(args.inputs[2].data);
  T* y = static_cast<T*>(args.outputs[0].data);
  const bool by_batch = s.batch >= args.threads;
  parallel_ranges(args.threads, by_batch ? s.batch : s.inner, by_batch ? 1 : kLanes, [&](int64_t begin, int64_t end) {
    const int64_t first = by_batch ? begin : 0, last = by_batch ? end : s.batch;
    for (int64_t b = first; b < last; ++b) scatter_columns<Op>(s, data, updates, y, b, by_batch ? 0 : begin, by_batch ? s.inner : end);
  });
}

template <typename Op>
void run_numbers(const KernelArgs& args, const ScatterShape& s) {
  switch (args.inputs[0].dtype) {
    case DType::f32: return run<Op, float>(args, s);
    case DType::f64: return run<Op, double>(args, s);
    case DType::i32: return run<Op, int32_t>(args, s);
    case DType::i64: return run<Op, int64_t>(args, s);
    default: unhandled_dtype(args.inputs[0].dtype);
  }
}

}  // namespace

void scatter_kernel(const KernelArgs& args) {
  const ScatterShape s(args.inputs[0], args.inputs[1]);
  const std::string& reduction = args.attributes->get_string(Attr::reduction);
  if (reduction == "add") return run_numbers<Add>(args, s);
  if (reduction == "mul") return run_numbers<Multiply>(args, s);
  if (reduction == "max") return run_numbers<Largest>(args, s);
  if (reduction == "min") return run_numbers<Smallest>(args, s);
  visit_width(args.inputs[0].dtype, [&](auto zero) { run<Write, decltype(zero)>(args, s); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
