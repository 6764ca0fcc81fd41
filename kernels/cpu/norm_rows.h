#pragma once
// Rows of layer_norm and rms_norm and their gradients; contiguous [R, C]. kCentered: layer_norm (mean is subtracted).
#include "graph/ops/workspace.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel.h"
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename T>
struct NormForward {
  const T *x, *gamma, *beta;  // [R, C], [C], [C] or null
  T *y, *mean, *rstd;         // [R, C], [R] or null, [R]
  int64_t columns;
  double epsilon;
};

template <typename T, bool kCentered>
void norm_row(const NormForward<T>& n, int64_t row) {
  const int64_t c = n.columns;
  const T* x = n.x + row * c;
  T* y = n.y + row * c;
  const T mean = kCentered ? sum_over<T>(c, [=](auto at) ZP_LAMBDA { return at.load(x); }) / static_cast<T>(c) : T(0);
  const Vec<T> m(mean);
  const T squares = sum_over<T>(c, [=](auto at) ZP_LAMBDA {
    const Vec<T> d = at.load(x) - m;
    return d * d;
  });
  const T rstd = T(1) / sqrt(squares / static_cast<T>(c) + static_cast<T>(n.epsilon));
  const Vec<T> r(rstd);
  const T *gamma = n.gamma, *beta = n.beta;
  if (beta)
    for_lanes<T>(c, [=](auto at) ZP_LAMBDA { at.store(y, (at.load(x) - m) * r * at.load(gamma) + at.load(beta)); });
  else
    for_lanes<T>(c, [=](auto at) ZP_LAMBDA { at.store(y, (at.load(x) - m) * r * at.load(gamma)); });
  if (kCentered) n.mean[row] = mean;
  n.rstd[row] = rstd;
}

template <typename T>
struct NormBackward {
  const T *dy, *x, *gamma, *mean, *rstd;  // mean null for rms_norm
  T* dx;                                  // may be dy
  T *dgamma, *dbeta;                      // dbeta null for rms_norm
  double* partial;                        // [kNormGradChunks, 2, C]
  int64_t rows, columns;
};

// With x̂ = (x - mean)·rstd and g = dy·gamma: dx = rstd·(g - mean(g) - x̂·mean(g·x̂)); rms_norm has no mean(g).
template <typename T, bool kCentered>
void norm_grad_row(const NormBackward<T>& n, int64_t row) {
  const int64_t c = n.columns;
  const T *dy = n.dy + row * c, *x = n.x + row * c, *gamma = n.gamma;
  T* dx = n.dx + row * c;
  const Vec<T> m(kCentered ? n.mean[row] : T(0)), r(n.rstd[row]);
  const T inverse = T(1) / static_cast<T>(c);
  const Vec<T> sum(kCentered ? sum_over<T>(c, [=](auto at) ZP_LAMBDA { return at.load(dy) * at.load(gamma); }) * inverse : T(0));
  const Vec<T> dot(sum_over<T>(c, [=](auto at) ZP_LAMBDA { return at.load(dy) * at.load(gamma) * ((at.load(x) - m) * r); }) * inverse);
  for_lanes<T>(c, [=](auto at) ZP_LAMBDA {
    const Vec<T> normal = (at.load(x) - m) * r;
    at.store(dx, r * (at.load(dy) * at.load(gamma) - sum - normal * dot));
  });
}

// Adds the rows [first, last) to the chunk's sums of dy·x̂ and dy, [2, C]: in T over these few rows, in double beyond.
template <typename T, bool kCentered>
void norm_grad_columns(const NormBackward<T>& n, int64_t first, int64_t last, double* sums) {
  for_lanes<T>(n.columns, [&](auto at) ZP_LAMBDA {
    Vec<T> dgamma(T(0)), dbeta(T(0));
    for (int64_t row = first; row < last; ++row) {
      const Vec<T> dy = at.load(n.dy + row * n.columns), m(kCentered ? n.mean[row] : T(0)), r(n.rstd[row]);
      dgamma += dy * ((at.load(n.x + row * n.columns) - m) * r);
      if (kCentered) dbeta += dy;
    }
    T part[2][kLanes];
    dgamma.store(part[0]);
    dbeta.store(part[1]);
    const int64_t count = n.columns - at.i < kLanes ? n.columns - at.i : kLanes;
    for (int64_t i = 0; i < count; ++i) sums[at.i + i] += part[0][i];
    if (kCentered)
      for (int64_t i = 0; i < count; ++i) sums[n.columns + at.i + i] += part[1][i];
  });
}

template <typename T, bool kCentered>
void norm_grad_chunk(const NormBackward<T>& n, int64_t chunk) {
  constexpr int64_t kRows = 8;  // stay in cache between the two passes
  double* sums = n.partial + chunk * 2 * n.columns;
  for (int64_t i = 0; i < 2 * n.columns; ++i) sums[i] = 0;
  const int64_t end = norm_grad_chunk_start(chunk + 1, n.rows);
  for (int64_t first = norm_grad_chunk_start(chunk, n.rows); first < end; first += kRows) {
    const int64_t last = first + kRows < end ? first + kRows : end;
    norm_grad_columns<T, kCentered>(n, first, last, sums);  // before dx overwrites dy
    for (int64_t row = first; row < last; ++row) norm_grad_row<T, kCentered>(n, row);
  }
}

// Folds the chunks in order into dgamma and dbeta.
template <typename T>
void norm_grad_fold(const NormBackward<T>& n) {
  for (int which = 0; which < 2; ++which) {
    T* to = which == 0 ? n.dgamma : n.dbeta;
    for (int64_t i = 0; to && i < n.columns; ++i) {
      double sum = 0;
      for (int64_t chunk = 0; chunk < kNormGradChunks; ++chunk) sum += n.partial[(chunk * 2 + which) * n.columns + i];
      to[i] = static_cast<T>(sum);
    }
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
