// Forward operators of ONNX Runtime's own domain, as its optimizers and its training tools leave them in a file.
#include "graph/onnx/decode_microsoft.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

std::vector<ValueId> operands(const DecodeContext& c) {
  std::vector<ValueId> all;
  for (int i = 0; i < c.count(); ++i) all.push_back(c.has(i) ? c.in(i) : kNone);
  return all;
}

void results(DecodeContext& c, const std::vector<ValueId>& values) {
  for (size_t i = 0; i < values.size(); ++i) c.out(static_cast<int>(i), values[i]);
}

// With the attributes of the node and more.
void standard(DecodeContext& c, const char* op, std::vector<ValueId> inputs, std::vector<OnnxAttribute> more = {}) {
  std::vector<OnnxAttribute> attributes = c.node.attributes;
  for (OnnxAttribute& attribute : more) attributes.push_back(std::move(attribute));
  results(c, decode_as(c, op, std::move(inputs), std::move(attributes)));
}

template <const char* const& op>
void standard(DecodeContext& c) {
  standard(c, op, operands(c));
}

template <bool tanh>
void bias_gelu(DecodeContext& c) {
  const Term x = c.has(1) ? term(c, 0) + term(c, 1) : term(c, 0);
  result(c, apply(OpKind::gelu, x, {{Attr::approximate, int64_t{tanh}}}));
}

// x · sigmoid(alpha x)
void quick_gelu(DecodeContext& c) { result(c, term(c, 0) * sigmoid(term(c, 0) * c.attr_float("alpha", 1.702))); }

// The last two axes exchanged.
Term matrix(DecodeContext& c, int input, bool transposed) {
  const Term x = term(c, input);
  return transposed && x.rank() > 1 ? axis_last(x, x.rank() - 2) : x;
}

void fused_matmul(DecodeContext& c) {
  if (c.attr_int("transBatchA", 0) || c.attr_int("transBatchB", 0)) throw Error("transBatchA and transBatchB are not supported");
  const Term product = matmul(matrix(c, 0, c.attr_int("transA", 0) != 0), matrix(c, 1, c.attr_int("transB", 0) != 0));
  const double alpha = c.attr_float("alpha", 1);
  result(c, alpha == 1 ? product : product * alpha);
}

// x + skip (+ bias) → norm; the sum itself is output 3.
void skip_norm(DecodeContext& c, const char* norm, std::vector<ValueId> factors, int bias) {
  Term sum = term(c, 0) + term(c, 1);
  if (c.has(bias)) sum = sum + term(c, bias);
  factors.insert(factors.begin(), sum.id());
  if (c.wants(1) || c.wants(2)) throw Error("its statistics are not supported; leave outputs 1 and 2 out");
  standard(c, norm, std::move(factors), {integer_attribute("axis", -1)});
  result(c, sum, 3);
}

void skip_layer_norm(DecodeContext& c) {
  std::vector<ValueId> factors = {c.in(2)};
  if (c.has(3)) factors.push_back(c.in(3));
  skip_norm(c, "LayerNormalization", std::move(factors), 4);
}

void skip_rms_norm(DecodeContext& c) { skip_norm(c, "RMSNormalization", {c.in(2)}, 3); }

// The second output are the lengths along the axis.
void concat_training(DecodeContext& c) {
  const int64_t axis = c.axis("axis", 0, c.rank(0));
  c.out(0, c.build.add(OpKind::concat, operands(c), {{Attr::axis, axis}}));
  std::vector<int64_t> lengths;
  for (int i = 0; i < c.count(); ++i) lengths.push_back(c.shape(i)[axis]);
  c.out(1, c.build.ints(lengths));
}

// Axes that each of two broadcast operands was repeated along.
void broadcast_gradient_args(DecodeContext& c) {
  const std::vector<int64_t> a = c.ints(0, "shape"), b = c.ints(1, "shape");
  const auto rank = static_cast<int64_t>(std::max(a.size(), b.size()));
  const auto length = [&](const std::vector<int64_t>& shape, int64_t axis) {
    const int64_t at = axis - (rank - static_cast<int64_t>(shape.size()));
    return at < 0 ? -1 : shape[at];  // -1: not there
  };
  std::vector<int64_t> of_a, of_b;
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    const int64_t x = length(a, axis), y = length(b, axis);
    if (x != y && (x == -1 || x == 1)) of_a.push_back(axis);
    if (x != y && (y == -1 || y == 1)) of_b.push_back(axis);
  }
  c.out(0, c.build.ints(of_a));
  c.out(1, c.build.ints(of_b));
}

// The ignored label is an input here.
void cross_entropy_internal(DecodeContext& c) {
  std::vector<OnnxAttribute> more;
  if (c.has(3)) more.push_back(integer_attribute("ignore_index", c.integer(3, "ignore_index")));
  std::vector<ValueId> inputs = operands(c);
  inputs.resize(c.has(2) ? 3 : 2);
  standard(c, "SoftmaxCrossEntropyLoss", std::move(inputs), std::move(more));
}

constexpr const char* const kGelu = "Gelu";
constexpr const char* const kLayerNorm = "LayerNormalization";
constexpr const char* const kRmsNorm = "RMSNormalization";
constexpr const char* const kReduceSum = "ReduceSum";
constexpr const char* const kSplit = "Split";

}  // namespace

void add_microsoft_decoders(DecoderTable& t) {
  const auto add = [&](const std::string& op, Decoder decoder) { t[kMicrosoft + op] = decoder; };
  add("Gelu", standard<kGelu>);
  add("BiasGelu", bias_gelu<false>);
  add("FastGelu", bias_gelu<true>);
  add("QuickGelu", quick_gelu);
  add("FusedMatMul", fused_matmul);
  add("LayerNormalization", standard<kLayerNorm>);
  add("SimplifiedLayerNormalization", standard<kRmsNorm>);
  t["SimplifiedLayerNormalization"] = standard<kRmsNorm>;  // ONNX Runtime has it in the default domain
  add("SkipLayerNormalization", skip_layer_norm);
  add("SkipSimplifiedLayerNormalization", skip_rms_norm);
  add("ConcatTraining", concat_training);
  add("ReduceSumTraining", {standard<kReduceSum>, gradient_to({0})});
  add("SplitTraining", {standard<kSplit>, gradient_to({0})});
  add("BroadcastGradientArgs", {broadcast_gradient_args, no_gradient()});
  add("SoftmaxCrossEntropyLossInternal", {cross_entropy_internal, gradient_to({0})});
  add_microsoft_gradients(t);
}

}  // namespace zeroplan
