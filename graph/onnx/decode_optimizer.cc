// The optimizers of ai.onnx.preview.training as plain nodes. Inputs are R (learning rate), T (steps taken), then for each role all tensors;
// formulas as in the operators' specification.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

// `later` from the second step on, `first` in the first.
Term by_step(Term steps, Term later, Term first) { return where(steps > 0, later, first); }

// One tensor to optimise and what belongs to it.
struct Optimized {
  Term rate, steps, x, gradient;  // the gradient with its L2 term
  std::vector<Term> state;
};

using Rule = std::vector<Term> (*)(DecodeContext& c, const Optimized& o);  // new x, new state

void optimize(DecodeContext& c, int states, Rule rule) {
  const int roles = 2 + states, tensors = (c.count() - 2) / roles;
  if (tensors < 1 || c.count() != 2 + tensors * roles)
    throw Error(fmt::format("it has {} inputs; R, T and {} for each tensor are needed", c.count(), roles));
  for (int i = 0; i < tensors; ++i) {
    const Term x = term(c, 2 + i);
    Optimized o{term(c, 0).cast(x.dtype()), term(c, 1).cast(x.dtype()), x, term(c, 2 + tensors + i), {}};
    o.gradient = c.attr_float("norm_coefficient", 0) * x + o.gradient;
    for (int s = 0; s < states; ++s) o.state.push_back(term(c, 2 + (2 + s) * tensors + i));
    const std::vector<Term> results = rule(c, o);
    for (int r = 0; r <= states; ++r) result(c, results[r], r * tensors + i);
  }
}

std::vector<Term> adam_rule(DecodeContext& c, const Optimized& o) {
  const double alpha = c.attr_float("alpha", 0.9), beta = c.attr_float("beta", 0.999);
  const Term mean = alpha * o.state[0] + (1 - alpha) * o.gradient;
  const Term square = beta * o.state[1] + (1 - beta) * (o.gradient * o.gradient);
  const Term root = sqrt(square) + c.attr_float("epsilon", 1e-6);
  const Term taken = maximum(o.steps, 1);  // in the first step the correction is not used, and 0 / 0
  const Term correction = sqrt(1 - pow(beta, taken)) / (1 - pow(alpha, taken));
  const Term rate = by_step(o.steps, o.rate * correction, o.rate);
  return {(1 - c.attr_float("norm_coefficient_post", 0)) * (o.x - rate * mean / root), mean, square};
}

std::vector<Term> adagrad_rule(DecodeContext& c, const Optimized& o) {
  const Term rate = o.rate / (1 + c.attr_float("decay_factor", 0) * o.steps);
  const Term square = o.state[0] + o.gradient * o.gradient;
  return {o.x - rate * o.gradient / (sqrt(square) + c.attr_float("epsilon", 1e-6)), square};
}

std::vector<Term> momentum_rule(DecodeContext& c, const Optimized& o) {
  const std::string mode = c.attr_string("mode", "standard");
  if (mode != "standard" && mode != "nesterov") throw Error(fmt::format("mode '{}' is unknown", mode));
  const double alpha = c.attr_float("alpha", 0);
  const Term beta = by_step(o.steps, o.steps.number(c.attr_float("beta", 1)), o.steps.number(1));
  const Term buffer = alpha * o.state[0] + beta * o.gradient;
  return {o.x - o.rate * (mode == "nesterov" ? o.gradient + alpha * buffer : buffer), buffer};
}

}  // namespace

void add_optimizer_decoders(DecoderTable& t) {
  t["ai.onnx.preview.training::Adam"] = {[](DecodeContext& c) { optimize(c, 2, adam_rule); }, no_gradient()};
  t["ai.onnx.preview.training::Adagrad"] = {[](DecodeContext& c) { optimize(c, 1, adagrad_rule); }, no_gradient()};
  t["ai.onnx.preview.training::Momentum"] = {[](DecodeContext& c) { optimize(c, 1, momentum_rule); }, no_gradient()};
}

}  // namespace zeroplan
