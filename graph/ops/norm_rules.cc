#include "graph/ops/norm_rules.h"

#include "graph/ops/cuda_workspace.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

int64_t grad_workspace(const Graph& graph, const Node& node, int) { return norm_grad_workspace(graph.value(node.inputs[0]).shape.back()); }

int64_t cuda_grad_workspace(const Graph& graph, const Node& node) {
  const Value& dy = graph.value(node.inputs[0]);
  return cuda_norm_grad_workspace(row_count(dy.shape), dy.shape.back(), dtype_bytes(wide_dtype(dy.dtype)));
}

void check_factor(const Graph& graph, const Node& node, int input, std::string_view name, DType dtype, const Shape& shape) {
  const Value& factor = operand(graph, node, input, name);
  expect_dtype(factor, dtype, name);
  expect_shape(factor, shape, name);
}

}  // namespace

Shape row_shape(Shape shape) {
  shape.back() = 1;
  return shape;
}

const Value& check_norm_operands(const Graph& graph, const Node& node, std::initializer_list<std::string_view> names) {
  const int most = 1 + static_cast<int>(names.size());
  expect_inputs(node, 2, most);
  node.attributes.get_double(Attr::epsilon);
  const Value& x = floating_operand(graph, node, 0, "x");
  expect_rank(x, 1, kMaxRank, "x");
  for (int i = 1; i < most; ++i)
    if (i == 1 || has_input(node, i)) check_factor(graph, node, i, names.begin()[i - 1], x.dtype, {x.shape.back()});
  return x;
}

const Value& check_norm_grad_operands(const Graph& graph, const Node& node, std::initializer_list<std::string_view> rows) {
  const int count = 3 + static_cast<int>(rows.size());
  expect_inputs(node, count, count);
  const Value& dy = floating_operand(graph, node, 0, "dy");
  expect_rank(dy, 1, kMaxRank, "dy");
  check_factor(graph, node, 1, "x", dy.dtype, dy.shape);
  check_factor(graph, node, 2, "gamma", dy.dtype, {dy.shape.back()});
  for (int i = 3; i < count; ++i) check_factor(graph, node, i, rows.begin()[i - 3], wide_dtype(dy.dtype), row_shape(dy.shape));
  return dy;
}

OpDef norm_def(double (*flops)(const Graph&, const Node&)) {
  OpDef def;
  def.in_place = {{0, 0}};
  def.flops = flops;
  return def;
}

OpDef norm_grad_def(double (*flops)(const Graph&, const Node&)) {
  OpDef def = norm_def(flops);
  def.workspace = grad_workspace;
  def.cuda_workspace = cuda_grad_workspace;
  return def;
}

}  // namespace zeroplan
