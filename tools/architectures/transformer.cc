#include "tools/architectures/transformer.h"

#include <cmath>
#include <limits>

namespace zeroplan {

std::string causal_mask(ModelWriter& m, int64_t context) {
  const std::string shape = m.ints({context, context});
  const std::string one = m.float_scalar(1);
  const std::string ones = m.node("Expand", {one, shape});
  const std::string lower = m.node("Trilu", {ones});
  m.attribute("upper", int64_t{0});
  const std::string keep = m.node("Cast", {lower});
  m.attribute("to", static_cast<int64_t>(onnx::TensorProto::BOOL));
  const std::string zero = m.float_scalar(0);
  const std::string minus_infinity = m.float_scalar(-std::numeric_limits<float>::infinity());
  return m.node("Where", {keep, zero, minus_infinity});
}

std::string split_heads(ModelWriter& m, const std::string& x, int64_t context, int64_t heads, int64_t head_width) {
  const std::string shape = m.ints({-1, context, heads, head_width});
  const std::string split = m.node("Reshape", {x, shape});
  const std::string result = m.node("Transpose", {split});
  m.attribute("perm", std::vector<int64_t>{0, 2, 1, 3});
  return result;
}

std::string merge_heads(ModelWriter& m, const std::string& x, int64_t context, int64_t width) {
  const std::string back = m.node("Transpose", {x});
  m.attribute("perm", std::vector<int64_t>{0, 2, 1, 3});
  const std::string shape = m.ints({-1, context, width});
  return m.node("Reshape", {back, shape});
}

std::string attend(ModelWriter& m, const std::string& q, const std::string& k, const std::string& v, const std::string& mask,
                   int64_t head_width) {
  const std::string k_transposed = m.node("Transpose", {k});
  m.attribute("perm", std::vector<int64_t>{0, 1, 3, 2});
  const std::string products = m.node("MatMul", {q, k_transposed});
  const std::string scale = m.float_scalar(1 / std::sqrt(static_cast<float>(head_width)));
  const std::string scaled = m.node("Mul", {products, scale});
  const std::string masked = m.node("Add", {scaled, mask});
  const std::string weights = m.node("Softmax", {masked});
  m.attribute("axis", int64_t{-1});
  return m.node("MatMul", {weights, v});
}

void token_loss(ModelWriter& m, const std::string& logits, int64_t vocabulary) {
  const std::string rows = m.ints({-1, vocabulary});
  const std::string flat_logits = m.node("Reshape", {logits, rows});
  const std::string row = m.ints({-1});
  const std::string flat_target = m.node("Reshape", {"target", row});
  m.node("SoftmaxCrossEntropyLoss", {flat_logits, flat_target}, "loss");
  m.scalar_output("loss");
}

}  // namespace zeroplan
