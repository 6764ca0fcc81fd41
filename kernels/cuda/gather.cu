// gather: rows of a table by index. gather_grad: adds rows back, in the order of the indices.
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/index_runs.cuh"
#include "kernels/cuda/row_indices.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// table [batch, repeats, rows, inner], y [batch, repeats, count, inner], indices [batch, count]; all contiguous.
struct GatherShape {
  int64_t batch = 1, repeats = 1, rows = 0, count = 0, inner = 1;

  GatherShape(const TensorView& table, const TensorView& indices, const Attributes& attributes) {
    int64_t axis = attributes.get_int(Attr::axis);
    if (axis < 0) axis += table.rank;
    const int64_t shared = attributes.has(Attr::axes) ? static_cast<int64_t>(attributes.get_ints(Attr::axes).size()) : 0;
    for (int64_t i = 0; i < axis; ++i) (i < shared ? batch : repeats) *= table.dims[i];
    rows = table.dims[axis];
    for (int64_t i = axis + 1; i < table.rank; ++i) inner *= table.dims[i];
    if (batch > 0) count = indices.elements() / batch;
  }
};

// n: elements of y, of W, which rows consist of.
template <typename W>
__global__ void gather_rows(int64_t n, const GatherShape s, const Divider by_inner, const RowIndices indices, const W* table, W* y) {
  const bool small = n < INT64_C(1) << 31;
  for_items(n, [&](int64_t i) {
    const int64_t line = small ? by_inner.quotient(static_cast<uint32_t>(i)) : i / s.inner;
    const int64_t outer = line / s.count, k = outer / s.repeats * s.count + line % s.count, row = indices.row(k);
    if (row >= 0) y[i] = table[(outer * s.rows + row) * s.inner + (i - line * s.inner)];
  });
}

// Bytes of the pieces that rows consist of: as many as 16.
int64_t piece_bytes(int64_t row_bytes, int64_t element, const void* table, const void* y) {
  if (row_bytes % kPackBytes == 0 && aligned(table) && aligned(y)) return kPackBytes;
  return element;
}

template <typename W>
void run_gather(const KernelArgs& args, GatherShape s, int64_t row_bytes) {
  const TensorView &table = args.inputs[0], &y = args.outputs[0];
  s.inner = row_bytes / static_cast<int64_t>(sizeof(W));
  const int64_t n = s.batch * s.repeats * s.count * s.inner;
  const Divider by_inner = n > 0 && n < INT64_C(1) << 31 ? Divider(static_cast<uint32_t>(s.inner)) : Divider();
  launch_over(args, n, gather_rows<W>, s, by_inner, RowIndices(args, args.inputs[1], s.rows), table.as<W>(), y.as<W>());
}

}  // namespace

void gather_kernel(const KernelArgs& args) {
  const TensorView &table = args.inputs[0], &y = args.outputs[0];
  const GatherShape s(table, args.inputs[1], *args.attributes);
  const int64_t element = dtype_bytes(table.dtype), row_bytes = s.inner * element;
  if (piece_bytes(row_bytes, element, table.data, y.data) == kPackBytes) return run_gather<uint4>(args, s, row_bytes);
  visit_width(table.dtype, [&](auto zero) { run_gather<decltype(zero)>(args, s, row_bytes); });
}

void gather_grad_kernel(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &d = args.outputs[0];
  const GatherShape s(d, args.inputs[1], *args.attributes);
  const int64_t bytes = d.elements() * dtype_bytes(d.dtype);
  if (bytes == 0) return;
  check_cuda(cudaMemsetAsync(d.data, 0, static_cast<size_t>(bytes), context_of(args).stream()), "cudaMemsetAsync");
  const RowJoin join = {sort_indices(args, args.inputs[1], s.batch, s.rows), s.repeats, s.rows, s.count, s.inner};
  visit_floating(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = dy.as<T>();
    if (d.dtype == dy.dtype) return launch_join<AddRows>(args, join, from, d.as<T>());
    launch_join<AddRows>(args, join, from, d.as<WideOf<T>>());
  });
}

}  // namespace zeroplan::kernels_cuda
