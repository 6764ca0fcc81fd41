// Gradients that ONNX Runtime's training tools write into a graph, where they are compositions of what is there.
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode_microsoft.h"

namespace zeroplan {
namespace {

// dy and x, or y.
template <OpKind op>
void elementwise_grad(DecodeContext& c) {
  c.out(0, c.build.add(op, {c.in(0), c.in(1)}));
}

ValueId gelu_gradient(DecodeContext& c, ValueId x, bool tanh) {
  return c.build.add(OpKind::gelu_grad, {c.in(0), x}, {{Attr::approximate, int64_t{tanh}}});
}

template <bool tanh>
void gelu_grad(DecodeContext& c) {
  c.out(0, gelu_gradient(c, c.in(1), tanh));
}

template <bool tanh>
void bias_gelu_grad(DecodeContext& c) {
  c.out(0, gelu_gradient(c, c.build.add(OpKind::add, {c.in(1), c.in(2)}), tanh));
}

// d(x·σ(αx)) = σ + αx·σ·(1 - σ)
void quick_gelu_grad(DecodeContext& c) {
  const DType dtype = c.build.dtype(c.in(1));
  const auto mul = [&](ValueId a, ValueId b) { return c.build.add(OpKind::mul, {a, b}); };
  const ValueId scaled = mul(c.in(1), c.build.scalar(c.attr_float("alpha", 1.702), dtype));
  const ValueId sigma = c.build.add(OpKind::sigmoid, {scaled});
  const ValueId rest = c.build.add(OpKind::sub, {c.build.scalar(1, dtype), sigma});
  c.out(0, mul(c.in(0), c.build.add(OpKind::add, {sigma, mul(scaled, mul(sigma, rest))})));
}

void leaky_relu_grad(DecodeContext& c) {
  const DType dtype = c.build.dtype(c.in(0));
  const ValueId low = c.build.add(OpKind::mul, {c.in(0), c.build.scalar(c.attr_float("alpha", 0.01), dtype)});
  c.out(0, c.build.add(OpKind::where, {c.build.add(OpKind::greater, {c.in(1), c.build.scalar(0, dtype)}), c.in(0), low}));
}

// The axis to the end, `fn` over the last axis, and back.
template <typename Fn>
ValueId over_axis(DecodeContext& c, Fn&& fn) {
  std::vector<int64_t> permutation(c.rank(0));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[c.axis("axis", -1, c.rank(0))], permutation.back());  // its own inverse
  const auto turned = [&](ValueId x) { return c.build.transpose(x, permutation); };
  return turned(fn(turned(c.in(0)), turned(c.in(1))));
}

void softmax_grad(DecodeContext& c) {
  c.out(0, over_axis(c, [&](ValueId dy, ValueId y) { return c.build.add(OpKind::softmax_grad, {dy, y}); }));
}

// dx = dy - e^y · Σ dy
void log_softmax_grad(DecodeContext& c) {
  const int64_t last = c.rank(0) - 1;
  c.out(0, over_axis(c, [&](ValueId dy, ValueId y) {
          const ValueId sum = c.build.add(OpKind::reduce_sum, {dy}, {{Attr::axes, std::vector{last}}, {Attr::keepdims, int64_t{1}}});
          return c.build.add(OpKind::sub, {dy, c.build.add(OpKind::mul, {c.build.add(OpKind::exp, {y}), sum})});
        }));
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
  const DType dtype = c.build.dtype(c.in(0));
  const double ratio = c.has(2) ? c.number(2, "ratio") : 0.5;
  const ValueId kept = c.build.add(OpKind::where, {c.in(1), c.in(0), c.build.scalar(0, dtype)});
  c.out(0, c.build.add(OpKind::mul, {kept, c.build.scalar(1 / (1 - ratio), dtype)}));
}

// shape, indices, dy
void gather_grad(DecodeContext& c) {
  const Shape shape = c.ints(0, "shape");
  const auto rank = static_cast<int64_t>(shape.size());
  c.out(0, c.build.add(OpKind::gather_grad, {c.in(2), c.in(1)}, {{Attr::axis, c.axis("axis", 0, rank)}, {Attr::shape, shape}}));
}

struct EntropyTerms {
  ValueId difference;  // softmax - one-hot, 0 for ignored labels; the classes last
  ValueId counted;     // of each label, 1 or 0
};

EntropyTerms entropy_terms(DecodeContext& c, ValueId log_probabilities, ValueId labels, const int64_t* ignored) {
  const DType dtype = c.build.dtype(log_probabilities);
  const int64_t rows = c.build.shape(log_probabilities)[0], classes = c.build.shape(log_probabilities)[1];
  const ValueId zero = c.build.scalar(0, dtype), one = c.build.scalar(1, dtype);
  const ValueId chosen = c.build.add(OpKind::equal, {c.build.reshape(labels, {rows, 1}), c.build.ints(c.build.counting(classes))});
  const ValueId softmax = c.build.add(OpKind::exp, {log_probabilities});
  const ValueId difference = c.build.add(OpKind::sub, {softmax, c.build.add(OpKind::where, {chosen, one, zero})});
  if (!ignored) return {difference, c.build.broadcast(c.build.reshape(one, {1, 1}), {rows, 1})};
  const ValueId out = c.build.add(OpKind::equal, {c.build.reshape(labels, {rows, 1}), c.build.ints({*ignored})});
  return {c.build.add(OpKind::where, {out, zero, difference}), c.build.add(OpKind::where, {out, zero, one})};
}

// dy, log-probabilities, labels, weights, ignored label
void cross_entropy_grad(DecodeContext& c) {
  if (c.has(3)) throw Error("class weights are not supported; leave them out");
  const std::string reduction = c.attr_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum") throw Error(fmt::format("reduction '{}' is not supported", reduction));
  int64_t ignored = c.attr_int("ignore_index", 0);
  const bool has_ignored = c.has(4) || c.node.find("ignore_index");
  if (c.has(4)) ignored = c.integer(4, "ignore_index");
  const Shape s = c.shape(1);
  if (s.size() < 2) throw Error("its log-probabilities need a class axis 1");
  std::vector<int64_t> classes_last(s.size()), back(s.size());
  std::iota(classes_last.begin(), classes_last.end(), 0);
  classes_last.erase(classes_last.begin() + 1);
  classes_last.push_back(1);
  for (size_t i = 0; i < back.size(); ++i) back[classes_last[i]] = static_cast<int64_t>(i);
  const ValueId turned = c.build.transpose(c.in(1), classes_last);
  const int64_t rows = elements(c.shape(2));
  const EntropyTerms terms =
      entropy_terms(c, c.build.reshape(turned, {rows, s[1]}), c.build.cast(c.in(2), DType::i64), has_ignored ? &ignored : nullptr);
  ValueId factor = c.build.reshape(c.in(0), {});
  if (reduction == "mean")
    factor = c.build.add(OpKind::div, {factor, c.build.add(OpKind::reduce_sum, {terms.counted},
                                                           {{Attr::axes, std::vector<int64_t>{0, 1}}, {Attr::keepdims, int64_t{0}}})});
  const Shape turned_shape = c.build.shape(turned);
  c.out(0, c.build.transpose(c.build.reshape(c.build.add(OpKind::mul, {terms.difference, factor}), turned_shape), back));
}

}  // namespace

void add_microsoft_gradients(DecoderTable& t) {
  const auto add = [&](const std::string& op, Decoder decoder) { t[kMicrosoft + op] = decoder; };
  add("ReluGrad", elementwise_grad<OpKind::relu_grad>);
  add("SigmoidGrad", elementwise_grad<OpKind::sigmoid_grad>);
  add("TanhGrad", elementwise_grad<OpKind::tanh_grad>);
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
