// Gradients that ONNX Runtime's training tools write into a graph, where they are compositions of what is there.
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode_microsoft.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

Term gelu_gradient(Term dy, Term x, bool tanh) {
  return {dy.build(), dy.build().add(OpKind::gelu_grad, {dy.id(), x.id()}, {{Attr::approximate, int64_t{tanh}}})};
}

template <bool tanh>
void gelu_grad(DecodeContext& c) {
  result(c, gelu_gradient(term(c, 0), term(c, 1), tanh));
}

template <bool tanh>
void bias_gelu_grad(DecodeContext& c) {
  result(c, gelu_gradient(term(c, 0), term(c, 1) + term(c, 2), tanh));
}

// d(x·σ(αx)) = σ + αx·σ·(1 - σ)
void quick_gelu_grad(DecodeContext& c) {
  const Term scaled = term(c, 1) * c.attr_float("alpha", 1.702), sigma = sigmoid(scaled);
  result(c, term(c, 0) * (sigma + scaled * (sigma * (1 - sigma))));
}

void leaky_relu_grad(DecodeContext& c) {
  const Term dy = term(c, 0);
  result(c, where(term(c, 1) > 0, dy, dy * c.attr_float("alpha", 0.01)));
}

// `fn` with the axis moved to the end.
template <typename Fn>
void over_axis(DecodeContext& c, Fn&& fn) {
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  const Term a = axis_last(term(c, 0), axis), b = axis_last(term(c, 1), axis);
  result(c, axis_back(fn(a, b), axis));
}

void softmax_grad(DecodeContext& c) {
  over_axis(c, [](Term dy, Term y) { return apply(OpKind::softmax_grad, dy, y); });
}

// dx = dy - e^y · Σ dy
void log_softmax_grad(DecodeContext& c) {
  over_axis(c, [](Term dy, Term y) { return dy - exp(y) * reduce(OpKind::reduce_sum, dy, {dy.rank() - 1}, true); });
}

// dy, x, scale, mean, 1/σ → dx, dscale, dbias
void layer_norm_grad(DecodeContext& c) {
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  const Shape original = c.shape(0), scale = c.shape(2);
  Shape flat(original.begin(), original.begin() + axis), statistics = flat;
  flat.push_back(elements(Shape(original.begin() + axis, original.end())));
  statistics.push_back(1);
  const auto shaped = [&](int i, const Shape& to) { return c.build.reshape(c.in(i), to); };
  const std::vector<ValueId> d = c.build.add_multi(
      OpKind::layer_norm_grad, {shaped(0, flat), shaped(1, flat), shaped(2, {flat.back()}), shaped(3, statistics), shaped(4, statistics)});
  c.out(0, c.build.reshape(d[0], original));
  c.out(1, c.build.reshape(d[1], scale));
  c.out(2, c.build.reshape(d[2], scale));
}

// dy, mask, ratio → dy·mask / (1 - ratio)
void dropout_grad(DecodeContext& c) {
  const double ratio = c.has(2) ? c.number(2, "ratio") : 0.5;
  result(c, where(term(c, 1), term(c, 0), 0) * (1 / (1 - ratio)));
}

// shape, indices, dy
void gather_grad(DecodeContext& c) {
  const Shape shape = c.ints(0, "shape");
  const auto rank = static_cast<int64_t>(shape.size());
  c.out(0, c.build.add(OpKind::gather_grad, {c.in(2), c.in(1)}, {{Attr::axis, c.axis("axis", 0, rank)}, {Attr::shape, shape}}));
}

struct EntropyTerms {
  Term difference;  // softmax - one-hot, 0 for ignored labels; the classes last
  Term counted;     // of each label, 1 or 0
};

EntropyTerms entropy_terms(Term log_probabilities, Term labels, std::optional<int64_t> ignored) {
  const int64_t rows = log_probabilities.shape()[0], classes = log_probabilities.shape()[1];
  const Term zero = log_probabilities.number(0), one = log_probabilities.number(1), column = labels.reshape({rows, 1});
  const Term chosen = column == positions(labels.build(), classes, 1, 2);
  const Term difference = exp(log_probabilities) - where(chosen, one, zero);
  if (!ignored) return {difference, one.reshape({1, 1}).broadcast({rows, 1})};
  const Term out = column == static_cast<double>(*ignored);
  return {where(out, zero, difference), where(out, zero, one)};
}

// dy, log-probabilities, labels, weights, ignored label
void cross_entropy_grad(DecodeContext& c) {
  if (c.has(3)) throw Error("class weights are not supported; leave them out");
  const std::string reduction = c.attr_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum") throw Error(fmt::format("reduction '{}' is not supported", reduction));
  std::optional<int64_t> ignored;
  if (c.node.find("ignore_index")) ignored = c.attr_int("ignore_index", 0);
  if (c.has(4)) ignored = c.integer(4, "ignore_index");
  if (c.rank(1) < 2) throw Error("its log-probabilities need a class axis 1");
  const int64_t rows = elements(c.shape(2));
  const Term turned = axis_last(term(c, 1), 1);
  const Shape moved = turned.shape();
  const EntropyTerms terms = entropy_terms(turned.reshape({rows, moved.back()}), term(c, 2).cast(DType::i64), ignored);
  const Term dy = term(c, 0).reshape({}), factor = reduction == "mean" ? dy / sum(terms.counted, {0, 1}) : dy;
  result(c, axis_back((terms.difference * factor).reshape(moved), 1));
}

}  // namespace

void add_microsoft_gradients(DecoderTable& t) {
  const auto add = [&](const std::string& op, Decoder decoder) { t[kMicrosoft + op] = decoder; };
  // dy and x, or y
  add("ReluGrad", binary<OpKind::relu_grad>);
  add("SigmoidGrad", binary<OpKind::sigmoid_grad>);
  add("TanhGrad", binary<OpKind::tanh_grad>);
  add("GeluGrad", gelu_grad<false>);
  add("FastGeluGrad", gelu_grad<true>);
  add("BiasGeluGrad_dX", bias_gelu_grad<false>);
  add("BiasFastGeluGrad_dX", bias_gelu_grad<true>);
  add("QuickGeluGrad", quick_gelu_grad);
  add("LeakyReluGrad", leaky_relu_grad);
  add("SoftmaxGrad_13", softmax_grad);
  add("LogSoftmaxGrad_13", log_softmax_grad);
  add("LayerNormalizationGrad", layer_norm_grad);
  add("DropoutGrad", {dropout_grad, gradient_to({0})});
  add("GatherGrad", {gather_grad, gradient_to({2})});
  add("SoftmaxCrossEntropyLossGrad", {cross_entropy_grad, gradient_to({0, 1})});
  add("SoftmaxCrossEntropyLossInternalGrad", {cross_entropy_grad, gradient_to({0, 1})});
}

}  // namespace zeroplan
