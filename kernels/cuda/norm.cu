// layer_norm and rms_norm; contiguous [R, C]. kCentered: layer_norm (the mean is subtracted).
#include "kernels/cuda/rows.cuh"

namespace zeroplan::kernels_cuda {

namespace {

template <typename T>
struct Forward {
  const T *x, *gamma, *beta;  // [R, C], [C], [C] or null
  T* y;                       // [R, C], may be x
  WideOf<T>*mean, *rstd;      // [R] or null, [R]
  WideOf<T> epsilon;
};

template <typename T, bool kCentered>
__device__ void norm_row(const Rows& rows, const Forward<T>& n, int64_t row) {
  using W = WideOf<T>;
  const T* x = n.x + row * rows.columns;
  const W count = static_cast<W>(rows.columns);
  W mean = 0;
  if constexpr (kCentered) {
    for_columns<T>(rows, [&](auto at) {
      const auto v = at.load(x);
      for (int k = 0; k < at.kCount; ++k) mean += v.at[k];
    });
    mean = fold_block(mean) / count;
  }
  Sums<W> apart = {0, 0};  // Σ (x - mean), which rounding leaves of the mean, and Σ (x - mean)²
  for_columns<T>(rows, [&](auto at) {
    const auto v = at.load(x);
    for (int k = 0; k < at.kCount; ++k) apart = apart + Sums<W>{v.at[k] - mean, (v.at[k] - mean) * (v.at[k] - mean)};
  });
  apart = fold_block(apart);
  const W rest = kCentered ? apart.a / count : W(0);
  const W rstd = inverse_root(apart.b / count - rest * rest + n.epsilon);
  for_columns<T>(rows, [&](auto at) {
    auto v = at.load(x);
    const auto gamma = at.load(n.gamma);
    for (int k = 0; k < at.kCount; ++k) v.at[k] = ((v.at[k] - mean) - rest) * rstd * gamma.at[k];
    if (n.beta != nullptr) {
      const auto beta = at.load(n.beta);
      for (int k = 0; k < at.kCount; ++k) v.at[k] += beta.at[k];
    }
    at.store(n.y + row * rows.columns, v);
  });
  if (threadIdx.x != 0) return;
  if constexpr (kCentered) n.mean[row] = mean + rest;
  n.rstd[row] = rstd;
}

template <typename T, bool kCentered>
__global__ void norm_rows(Rows rows, Forward<T> n) {
  for_rows(rows, [&](int64_t row) { norm_row<T, kCentered>(rows, n, row); });
}

template <typename T, bool kCentered>
void run_norm(const KernelArgs& args) {
  using W = WideOf<T>;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  Forward<T> n = {x.as<T>(),
                  args.inputs[1].as<T>(),
                  nullptr,
                  y.as<T>(),
                  nullptr,
                  args.outputs[kCentered ? 2 : 1].as<W>(),
                  static_cast<W>(args.attributes->get_double(Attr::epsilon))};
  if (kCentered) n.mean = args.outputs[1].as<W>();
  if (kCentered && args.input_count > 2) n.beta = args.inputs[2].as<T>();
  launch_rows(args, rows_of(x, {n.x, n.gamma, n.beta, n.y}), sizeof(T), norm_rows<T, kCentered>, n);
}

}  // namespace

// x, gamma, beta (optional) → y, mean, rstd
void layer_norm_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_norm<decltype(zero), true>(args); });
}

// x, gamma → y, rstd
void rms_norm_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_norm<decltype(zero), false>(args); });
}

}  // namespace zeroplan::kernels_cuda
