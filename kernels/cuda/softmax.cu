// softmax and softmax_grad over the last axis; contiguous [rows, C].
#include "kernels/cuda/softmax.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// x, y [rows, C]; y may be x
template <typename T>
__global__ void softmax(Rows rows, const T* x, T* y) {
  for_rows(rows, [&](int64_t row) {
    const int64_t first = row * rows.columns;
    const auto all = row_softmax_sum(rows, x + first);
    for_columns<T>(rows, [&](auto at) {
      auto values = at.load(x + first);
      for (int k = 0; k < at.kCount; ++k) values.at[k] = exponential(values.at[k] - all.largest) / all.sum;
      at.store(y + first, values);
    });
  });
}

// dx = y · (dy - Σ dy·y). dy, y, dx [rows, C]; dx may be dy or y
template <typename T>
__global__ void softmax_grad(Rows rows, const T* dy, const T* y, T* dx) {
  using W = WideOf<T>;
  for_rows(rows, [&](int64_t row) {
    const int64_t first = row * rows.columns;
    W dot = 0;
    for_columns<T>(rows, [&](auto at) {
      const auto g = at.load(dy + first), p = at.load(y + first);
      for (int k = 0; k < at.kCount; ++k) dot += g.at[k] * p.at[k];
    });
    dot = fold_block(dot);
    for_columns<T>(rows, [&](auto at) {
      auto g = at.load(dy + first);
      const auto p = at.load(y + first);
      for (int k = 0; k < at.kCount; ++k) g.at[k] = p.at[k] * (g.at[k] - dot);
      at.store(dx + first, g);
    });
  });
}

}  // namespace

void softmax_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_rows(args, rows_of(x, {x.data, y.data}), sizeof(T), softmax<T>, x.as<T>(), y.as<T>());
  });
}

void softmax_grad_kernel(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &y = args.inputs[1], &dx = args.outputs[0];
  visit_floating(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_rows(args, rows_of(dy, {dy.data, y.data, dx.data}), sizeof(T), softmax_grad<T>, dy.as<T>(), y.as<T>(), dx.as<T>());
  });
}

}  // namespace zeroplan::kernels_cuda
