// The optimizers of ai.onnx.preview.training as plain nodes. Inputs are R (learning rate), T (steps taken), then for each role all tensors;
// formulas as in the operators' specification.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

// Arithmetic on values of one type; numbers take it too.
class Arithmetic {
 public:
  Arithmetic(FoldingBuilder& build, DType dtype) : build_(build), dtype_(dtype) {}

  ValueId number(double value) { return build_.scalar(value, dtype_); }
  ValueId as_type(ValueId x) { return build_.cast(x, dtype_); }
  ValueId add(ValueId a, ValueId b) { return build_.add(OpKind::add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return build_.add(OpKind::sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return build_.add(OpKind::mul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return build_.add(OpKind::div, {a, b}); }
  ValueId scaled(double factor, ValueId x) { return mul(number(factor), x); }
  ValueId root(ValueId x) { return build_.add(OpKind::sqrt, {x}); }
  ValueId power(double base, ValueId exponent) { return build_.add(OpKind::pow, {number(base), exponent}); }
  // `later` from the second step on, `first` in the first.
  ValueId by_step(ValueId steps, ValueId later, ValueId first) {
    return build_.add(OpKind::where, {build_.add(OpKind::greater, {steps, number(0)}), later, first});
  }

 private:
  FoldingBuilder& build_;
  DType dtype_;
};

// One tensor to optimise and what belongs to it.
struct Optimized {
  ValueId rate, steps, x, gradient;  // the gradient with its L2 term
  std::vector<ValueId> state;
};

using Rule = std::vector<ValueId> (*)(DecodeContext& c, Arithmetic& a, const Optimized& o);  // new x, new state

void optimize(DecodeContext& c, int states, Rule rule) {
  const int roles = 2 + states, tensors = (c.count() - 2) / roles;
  if (tensors < 1 || c.count() != 2 + tensors * roles)
    throw Error(fmt::format("it has {} inputs; R, T and {} for each tensor are needed", c.count(), roles));
  for (int i = 0; i < tensors; ++i) {
    Arithmetic a(c.build, c.build.dtype(c.in(2 + i)));
    Optimized o{a.as_type(c.in(0)), a.as_type(c.in(1)), c.in(2 + i), c.in(2 + tensors + i), {}};
    o.gradient = a.add(a.scaled(c.attr_float("norm_coefficient", 0), o.x), o.gradient);
    for (int s = 0; s < states; ++s) o.state.push_back(c.in(2 + (2 + s) * tensors + i));
    const std::vector<ValueId> results = rule(c, a, o);
    for (int r = 0; r <= states; ++r) c.out(r * tensors + i, results[r]);
  }
}

std::vector<ValueId> adam_rule(DecodeContext& c, Arithmetic& a, const Optimized& o) {
  const double alpha = c.attr_float("alpha", 0.9), beta = c.attr_float("beta", 0.999);
  const ValueId mean = a.add(a.scaled(alpha, o.state[0]), a.scaled(1 - alpha, o.gradient));
  const ValueId square = a.add(a.scaled(beta, o.state[1]), a.scaled(1 - beta, a.mul(o.gradient, o.gradient)));
  const ValueId root = a.add(a.root(square), a.number(c.attr_float("epsilon", 1e-6)));
  const ValueId correction = a.div(a.root(a.sub(a.number(1), a.power(beta, o.steps))), a.sub(a.number(1), a.power(alpha, o.steps)));
  const ValueId rate = a.by_step(o.steps, a.mul(o.rate, correction), o.rate);
  const ValueId x = a.sub(o.x, a.div(a.mul(rate, mean), root));
  return {a.scaled(1 - c.attr_float("norm_coefficient_post", 0), x), mean, square};
}

std::vector<ValueId> adagrad_rule(DecodeContext& c, Arithmetic& a, const Optimized& o) {
  const ValueId rate = a.div(o.rate, a.add(a.number(1), a.scaled(c.attr_float("decay_factor", 0), o.steps)));
  const ValueId square = a.add(o.state[0], a.mul(o.gradient, o.gradient));
  const ValueId root = a.add(a.root(square), a.number(c.attr_float("epsilon", 1e-6)));
  return {a.sub(o.x, a.div(a.mul(rate, o.gradient), root)), square};
}

std::vector<ValueId> momentum_rule(DecodeContext& c, Arithmetic& a, const Optimized& o) {
  const std::string mode = c.attr_string("mode", "standard");
  if (mode != "standard" && mode != "nesterov") throw Error(fmt::format("mode '{}' is unknown", mode));
  const double alpha = c.attr_float("alpha", 0);
  const ValueId beta = a.by_step(o.steps, a.number(c.attr_float("beta", 1)), a.number(1));
  const ValueId buffer = a.add(a.scaled(alpha, o.state[0]), a.mul(beta, o.gradient));
  const ValueId step = mode == "nesterov" ? a.add(o.gradient, a.scaled(alpha, buffer)) : buffer;
  return {a.sub(o.x, a.mul(o.rate, step)), buffer};
}

}  // namespace

void add_optimizer_decoders(DecoderTable& t) {
  t["ai.onnx.preview.training::Adam"] = {[](DecodeContext& c) { optimize(c, 2, adam_rule); }, no_gradient()};
  t["ai.onnx.preview.training::Adagrad"] = {[](DecodeContext& c) { optimize(c, 1, adagrad_rule); }, no_gradient()};
  t["ai.onnx.preview.training::Momentum"] = {[](DecodeContext& c) { optimize(c, 1, momentum_rule); }, no_gradient()};
}

}  // namespace zeroplan
