#pragma once
// One element of each optimizer step, PyTorch's formulas. Scalars are prepared in double; the arithmetic is in the type of the weights.
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// T: float or double.
template <typename T>
struct StepScalars {
  T weight;  // W, that gradients are divided by
  T factor;  // of clipping
  T decay;   // adamw: 1 - lr·λ; adam, sgd: λ
  T beta2;
  T rest1, rest2;     // 1 - β1, 1 - β2
  T step_size;        // lr / (1 - β1^t)
  T root_correction;  // sqrt(1 - β2^t)
  T epsilon;
  T lr, momentum;
};

// g as the optimizer sees it.
template <typename V, typename T>
ZP_DEVICE V scaled_gradient(V gradient, const StepScalars<T>& s) {
  return gradient / V(s.weight) * V(s.factor);
}

// torch.optim.Adam, _single_tensor_adam: m by lerp, v, then p - step_size · m / (sqrt(v) / sqrt(1 - β2^t) + ε).
template <typename V, typename T>
ZP_DEVICE void adam_moments(V& p, V g, V& m, V& v, const StepScalars<T>& s) {
  m = m + V(s.rest1) * (g - m);
  v = v * V(s.beta2) + V(s.rest2) * g * g;
  p = p - V(s.step_size) * m / (sqrt(v) / V(s.root_correction) + V(s.epsilon));
}
template <typename V, typename T>
ZP_DEVICE void adamw_step(V& p, V g, V& m, V& v, const StepScalars<T>& s) {
  p = p * V(s.decay);
  adam_moments(p, g, m, v, s);
}
template <typename V, typename T>
ZP_DEVICE void adam_step(V& p, V g, V& m, V& v, const StepScalars<T>& s) {
  adam_moments(p, g + V(s.decay) * p, m, v, s);
}
// torch.optim.SGD; the buffer is the gradient itself in the first step.
template <typename V, typename T>
ZP_DEVICE void sgd_step(V& p, V g, const StepScalars<T>& s) {
  p = p - V(s.lr) * (g + V(s.decay) * p);
}
template <typename V, typename T>
ZP_DEVICE void sgd_momentum_step(V& p, V g, V& buffer, bool first, const StepScalars<T>& s) {
  g = g + V(s.decay) * p;
  buffer = first ? g : V(s.momentum) * buffer + g;
  p = p - V(s.lr) * buffer;
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
