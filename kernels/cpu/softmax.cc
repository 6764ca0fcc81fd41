// softmax and softmax_grad over the last axis; contiguous [rows, C].
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/space.h"
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

template <typename T>
void softmax_row(const T* x, T* y, int64_t n) {
  const Vec<T> top(max_over(x, n));
  const T sum = sum_over<T>(n, [=](auto at) ZP_LAMBDA {
    const Vec<T> e = exp(at.load(x) - top);
    at.store(y, e);
    return e;
  });
  const Vec<T> total(sum);
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, at.load(y) / total); });
}

// dx = y · (dy - Σ dy·y)
template <typename T>
void softmax_grad_row(const T* dy, const T* y, T* dx, int64_t n) {
  const Vec<T> dot(sum_over<T>(n, [=](auto at) ZP_LAMBDA { return at.load(dy) * at.load(y); }));
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(dx, at.load(y) * (at.load(dy) - dot)); });
}

// fn(element offset of a row, its length) for every row.
template <typename Fn>
void for_rows(const TensorView& x, int threads, const Fn& fn) {
  const int64_t columns = x.dims[x.rank - 1], rows = columns > 0 ? count_elements(x) / columns : 0;
  parallel_ranges(threads, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) fn(row * columns, columns);
  });
}

}  // namespace

void softmax_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = static_cast<const T*>(args.inputs[0].data);
    T* y = static_cast<T*>(args.outputs[0].data);
    for_rows(args.inputs[0], args.threads, [=](int64_t first, int64_t n) { softmax_row(x + first, y + first, n); });
  });
}

void softmax_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *dy = static_cast<const T*>(args.inputs[0].data), *y = static_cast<const T*>(args.inputs[1].data);
    T* dx = static_cast<T*>(args.outputs[0].data);
    for_rows(args.inputs[0], args.threads, [=](int64_t first, int64_t n) { softmax_grad_row(dy + first, y + first, dx + first, n); });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
