// Activations that are formulas over other operators.
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/activations.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

void elu(DecodeContext& c) { result(c, exponential_unit(term(c, 0), c.attr_float("alpha", 1))); }

void celu(DecodeContext& c) {
  const double alpha = c.attr_float("alpha", 1);
  result(c, exponential_unit(term(c, 0), alpha, alpha));
}

void selu(DecodeContext& c) {
  const double alpha = c.attr_float("alpha", 1.67326319217681884765625), gamma = c.attr_float("gamma", 1.05070102214813232421875);
  result(c, exponential_unit(term(c, 0), alpha) * gamma);
}

void hard_sigmoid_op(DecodeContext& c) { result(c, hard_sigmoid(term(c, 0), c.attr_float("alpha", 0.2), c.attr_float("beta", 0.5))); }

void hard_swish(DecodeContext& c) {
  const Term x = term(c, 0);
  result(c, x * hard_sigmoid(x, 1.0 / 6, 0.5));
}

void softplus_op(DecodeContext& c) { result(c, softplus(term(c, 0))); }

void mish(DecodeContext& c) {
  const Term x = term(c, 0);
  result(c, x * tanh(softplus(x)));
}

void softsign_op(DecodeContext& c) { result(c, softsign(term(c, 0))); }
void leaky_relu_op(DecodeContext& c) { result(c, leaky_relu(term(c, 0), c.attr_float("alpha", 0.01))); }
void thresholded_relu_op(DecodeContext& c) { result(c, thresholded_relu(term(c, 0), c.attr_float("alpha", 1))); }

// Bias and threshold are no whole numbers: integers take a way over floating point.
void shrink(DecodeContext& c) {
  const double bias = c.attr_float("bias", 0), threshold = c.attr_float("lambd", 0.5);
  const DType given = c.build.dtype(c.in(0));
  const Term x = is_floating(given) ? term(c, 0) : term(c, 0).cast(DType::f64);
  result(c, where(x < -threshold, x + bias, where(x > threshold, x - bias, 0)).cast(given));
}

void prelu(DecodeContext& c) {
  const Term x = term(c, 0), slope = term(c, 1);
  if (!broadcasts_to(slope.shape(), x.shape()))
    throw Error(fmt::format("its slope of shape {} does not broadcast to {}", to_string(slope.shape()), to_string(x.shape())));
  result(c, where(x < 0, x * slope, x));
}

void gelu(DecodeContext& c) {
  const std::string approximate = c.attr_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") throw Error(fmt::format("approximate '{}' is unknown", approximate));
  result(c, apply(OpKind::gelu, term(c, 0), {{Attr::approximate, int64_t{approximate == "tanh"}}}));
}

Term swish(Term x, double alpha) { return alpha == 1 ? apply(OpKind::silu, x) : x * sigmoid(x * alpha); }

void swish_op(DecodeContext& c) { result(c, swish(term(c, 0), c.attr_float("alpha", 1))); }

void swiglu(DecodeContext& c) { result(c, swish(term(c, 0), c.attr_float("alpha", 1)) * term(c, 1)); }

// 1 at the first of the largest elements.
void hardmax(DecodeContext& c) {
  const Term x = term(c, 0);
  const int64_t axis = c.axis("axis", -1, x.rank()), count = x.shape()[axis];
  const Term at = positions(c.build, count, axis, x.rank());
  const Term largest = x == reduce(OpKind::reduce_max, x, {axis}, true);
  const Term from_end = where(largest, static_cast<double>(count) - at, 0);
  const Term first = static_cast<double>(count) - reduce(OpKind::reduce_max, from_end, {axis}, true);
  result(c, (at == first).cast(x.dtype()));
}

}  // namespace

void add_activation_decoders(DecoderTable& t) {
  t["Elu"] = elu;
  t["Celu"] = celu;
  t["Selu"] = selu;
  t["HardSigmoid"] = hard_sigmoid_op;
  t["HardSwish"] = hard_swish;
  t["Softplus"] = softplus_op;
  t["Mish"] = mish;
  t["Softsign"] = softsign_op;
  t["LeakyRelu"] = leaky_relu_op;
  t["ThresholdedRelu"] = thresholded_relu_op;
  t["Shrink"] = shrink;
  t["PRelu"] = prelu;
  t["Gelu"] = gelu;
  t["Swish"] = swish_op;
  t["SwiGLU"] = swiglu;
  t["Hardmax"] = {hardmax, no_gradient()};
}

}  // namespace zeroplan
