// Forward operators of ONNX Runtime's own domain, as its optimizers and its training tools leave them in a file.
#include "graph/onnx/decode_microsoft.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

// The same node as an operator of the default domain.
void decode_as(DecodeContext& c, const std::string& op, std::vector<ValueId> inputs, std::vector<OnnxAttribute> more = {}) {
  OnnxNode node = c.node;
  node.op = op;
  node.domain.clear();
  for (OnnxAttribute& attribute : more) node.attributes.push_back(std::move(attribute));
  const Decoder decoder = find_decoder(node);
  if (!decoder) throw Error(fmt::format("it stands for {}, which has no decoder", op));
  DecodeContext inner(c.build, node, c.files, c.precision, std::move(inputs));
  decoder(inner);
  for (size_t i = 0; i < inner.outputs().size(); ++i) c.out(static_cast<int>(i), inner.outputs()[i]);
}

std::vector<ValueId> operands(const DecodeContext& c) {
  std::vector<ValueId> all;
  for (int i = 0; i < c.count(); ++i) all.push_back(c.has(i) ? c.in(i) : kNone);
  return all;
}

template <const char* const& op>
void standard(DecodeContext& c) {
  decode_as(c, op, operands(c));
}

ValueId gelu_of(DecodeContext& c, ValueId x, bool tanh) { return c.build.add(OpKind::gelu, {x}, {{Attr::approximate, int64_t{tanh}}}); }

ValueId biased(DecodeContext& c) { return c.has(1) ? c.build.add(OpKind::add, {c.in(0), c.in(1)}) : c.in(0); }

void bias_gelu(DecodeContext& c) { c.out(0, gelu_of(c, biased(c), false)); }

void fast_gelu(DecodeContext& c) { c.out(0, gelu_of(c, biased(c), true)); }

// x · sigmoid(alpha x)
void quick_gelu(DecodeContext& c) {
  const ValueId x = c.in(0), alpha = c.build.scalar(c.attr_float("alpha", 1.702), c.build.dtype(x));
  c.out(0, c.build.add(OpKind::mul, {x, c.build.add(OpKind::sigmoid, {c.build.add(OpKind::mul, {x, alpha})})}));
}

ValueId matrix(DecodeContext& c, int input, bool transposed) {
  const auto rank = static_cast<int64_t>(c.shape(input).size());
  if (!transposed || rank < 2) return c.in(input);
  std::vector<int64_t> permutation;
  for (int64_t axis = 0; axis < rank; ++axis) permutation.push_back(axis);
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  return c.build.transpose(c.in(input), permutation);
}

void fused_matmul(DecodeContext& c) {
  if (c.attr_int("transBatchA", 0) || c.attr_int("transBatchB", 0)) throw Error("transBatchA and transBatchB are not supported");
  const ValueId product =
      c.build.add(OpKind::matmul, {matrix(c, 0, c.attr_int("transA", 0) != 0), matrix(c, 1, c.attr_int("transB", 0) != 0)});
  const double alpha = c.attr_float("alpha", 1);
  c.out(0, alpha == 1 ? product : c.build.add(OpKind::mul, {product, c.build.scalar(alpha, c.build.dtype(product))}));
}

// x + skip (+ bias) → norm; the sum itself is output 3.
void skip_norm(DecodeContext& c, const char* norm, std::vector<ValueId> factors, int bias) {
  ValueId sum = c.build.add(OpKind::add, {c.in(0), c.in(1)});
  if (c.has(bias)) sum = c.build.add(OpKind::add, {sum, c.in(bias)});
  factors.insert(factors.begin(), sum);
  OnnxAttribute axis;
  axis.name = "axis";
  axis.i = -1;
  if (c.wants(1) || c.wants(2)) throw Error("its statistics are not supported; leave outputs 1 and 2 out");
  decode_as(c, norm, std::move(factors), {axis});
  c.out(3, sum);
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
  if (c.has(3)) {
    OnnxAttribute ignored;
    ignored.name = "ignore_index";
    ignored.i = c.integer(3, "ignore_index");
    more.push_back(ignored);
  }
  std::vector<ValueId> inputs = operands(c);
  inputs.resize(c.has(2) ? 3 : 2);
  decode_as(c, "SoftmaxCrossEntropyLoss", std::move(inputs), std::move(more));
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
  add("BiasGelu", bias_gelu);
  add("FastGelu", fast_gelu);
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
