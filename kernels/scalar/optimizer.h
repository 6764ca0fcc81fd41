#pragma once
// One element of each optimizer step, PyTorch's formulas. Scalars are prepared in double; the arithmetic is in the type of the weights.
#include "kernels/failures.h"
#include "kernels/scalar/math.h"
#include "runtime/plan/report.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

enum class UpdateRule : uint8_t { adamw, adam, sgd, sgd_momentum };

inline UpdateRule update_rule(const std::string& optimizer, bool has_moments) {
  if (optimizer == "adamw") return UpdateRule::adamw;
  if (optimizer == "adam") return UpdateRule::adam;
  if (optimizer == "sgd") return has_moments ? UpdateRule::sgd_momentum : UpdateRule::sgd;
  unknown_optimizer(optimizer);
}

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

// base^n for n >= 0 by repeated squaring, in two doubles (Dekker; the error of a product by fma): the same bits on every device, and the
// rounded power but for the rarest of cases, as a library's pow.
ZP_DEVICE double whole_power(double base, int64_t n) {
  struct Pair {
    double high, low;
  };
  const auto times = [](Pair a, Pair b) {
    const double product = a.high * b.high;
    const double rest = ZP_LIBM(fma)(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
    const double sum = product + rest;
    return Pair{sum, rest - (sum - product)};
  };
  Pair power{1, 0}, square{base, 0};
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0) power = times(power, square);
    square = times(square, square);
  }
  return power.high;
}

// t of the update, from 1: steps that updated nothing do not count.
ZP_DEVICE int64_t update_count(const RunScalars& run) { return run.step - run.skipped; }

// All but the decay, which differs between parameters.
template <typename T>
ZP_DEVICE StepScalars<T> step_scalars(const RunScalars& run, const double* report) {
  StepScalars<T> s;
  s.weight = static_cast<T>(report[kReportWeight]);
  s.factor = static_cast<T>(report[kReportFactor]);
  s.decay = 0;
  s.beta2 = static_cast<T>(run.beta2);
  s.rest1 = static_cast<T>(1 - run.beta1);
  s.rest2 = static_cast<T>(1 - run.beta2);
  s.step_size = static_cast<T>(run.lr / (1 - whole_power(run.beta1, update_count(run))));
  s.root_correction = static_cast<T>(sqrt(1 - whole_power(run.beta2, update_count(run))));
  s.epsilon = static_cast<T>(run.epsilon);
  s.lr = static_cast<T>(run.lr);
  s.momentum = static_cast<T>(run.momentum);
  return s;
}
template <typename T>
ZP_DEVICE T decay_scalar(const RunScalars& run, UpdateRule rule, double factor) {
  const double decay = run.weight_decay * factor;
  return static_cast<T>(rule == UpdateRule::adamw ? 1 - run.lr * decay : decay);
}

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
