// The kernels around the model: losses, norms and the optimizer. Operands in docs/architecture.md, layouts in runtime/plan/report.h.
// Their numbers depend on the step (RunScalars), so they have no reference evaluator here.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

OutputType type_of(const Value& value) { return {value.dtype, value.shape}; }

// Metrics and report are vectors of f64, the limbs of the norm one of i64.
const Value& vector_operand(const Graph& graph, const Node& node, int i, std::string_view what, DType dtype) {
  const Value& value = operand(graph, node, i, what);
  expect_dtype(value, dtype, what);
  expect_rank(value, 1, 1, what);
  return value;
}

const Unit& unit_of(const Graph& graph, const Node& node) {
  if (node.unit < 0 || node.unit >= static_cast<int32_t>(graph.units.size())) throw Error("belongs to no unit");
  return graph.units[node.unit];
}

// sum, weight (optional), metrics → metrics'
std::vector<OutputType> infer_record_loss(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  expect_shape(wide_operand(graph, node, 0, "sum"), {}, "sum");
  if (has_input(node, 1)) expect_shape(operand(graph, node, 1, "weight"), {}, "weight");
  return {type_of(vector_operand(graph, node, 2, "metrics", DType::f64))};
}

// x, state → state'
std::vector<OutputType> infer_record_output(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& x = operand(graph, node, 0, "x");
  const Value& state = operand(graph, node, 1, "state");
  expect_dtype(state, x.dtype, "state");
  expect_shape(state, x.shape, "state");
  return {type_of(state)};
}

// gradients of the unit in order → token
std::vector<OutputType> infer_fill_padding(const Graph& graph, const Node& node) {
  const Unit& unit = unit_of(graph, node);
  const int count = static_cast<int>(unit.parameters.size());
  expect_inputs(node, count, count);
  for (int i = 0; i < count; ++i) {
    const Value& gradient = operand(graph, node, i, "gradient");
    expect_dtype(gradient, unit.reduce_dtype, "gradient");
    expect_shape(gradient, graph.parameters[unit.parameters[i].parameter].shape, "gradient");
  }
  return {{unit.reduce_dtype, {unit.padded_elements}}};
}

void check_scale(const Graph& graph, const Node& node) {
  const Value& scale = operand(graph, node, 2, "loss scale");
  expect_dtype(scale, DType::f32, "loss scale");
  expect_shape(scale, {}, "loss scale");
}

// metrics, report, loss scale (optional) → report', metrics'
std::vector<OutputType> infer_fold_metrics(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 3);
  if (node.inputs.size() > 2) check_scale(graph, node);
  const Value& metrics = vector_operand(graph, node, 0, "metrics", DType::f64);
  return {type_of(vector_operand(graph, node, 1, "report", DType::f64)), type_of(metrics)};
}

// gradient shard, report, limbs → limbs'. starts: limbs that count what is not finite, one for each parameter of the unit.
std::vector<OutputType> infer_grad_norm(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  expect_rank(wide_operand(graph, node, 0, "gradient"), 1, 1, "gradient");
  vector_operand(graph, node, 1, "report", DType::f64);
  return {type_of(vector_operand(graph, node, 2, "limbs", DType::i64))};
}

// limbs, report → report', limbs'; with a loss scale also scale, overflows → scale', overflows'
std::vector<OutputType> infer_clip_factor(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 4);
  const Value& limbs = vector_operand(graph, node, 0, "limbs", DType::i64);
  std::vector<OutputType> types = {type_of(vector_operand(graph, node, 1, "report", DType::f64)), type_of(limbs)};
  if (node.inputs.size() == 2) return types;
  check_scale(graph, node);
  types.push_back({DType::f32, {}});
  types.push_back(type_of(vector_operand(graph, node, 3, "overflows", DType::i64)));
  return types;
}

void check_moments(const Node& node, bool master) {
  const std::string& optimizer = node.attributes.get_string(Attr::optimizer);
  if (master && node.inputs.size() < 4) throw Error("weights of 16 bits are updated by way of a master, which is missing");
  const size_t moments = node.inputs.size() - (master ? 4 : 3);
  const bool adam = optimizer == "adam" || optimizer == "adamw";
  if (!adam && optimizer != "sgd") throw Error(fmt::format("unknown optimizer '{}'; adamw, adam and sgd exist", optimizer));
  if (adam ? moments != 2 : moments > 1) throw Error(fmt::format("optimizer {} does not take {} moments", optimizer, moments));
}

// weights, gradient, report, moments… → weights', moments'…, gradient'. With weights of 16 bits the first moment is their master, which is
// updated and rounded into them.
std::vector<OutputType> infer_optimizer_update(const Graph& graph, const Node& node) {
  const Value& weights = floating_operand(graph, node, 0, "weights");
  expect_inputs(node, 3, is_half(weights.dtype) ? 6 : 5);
  check_moments(node, is_half(weights.dtype));
  const Value& gradient = operand(graph, node, 1, "gradient");
  expect_rank(weights, 1, 1, "weights");
  expect_dtype(gradient, wide_dtype(weights.dtype), "gradient");
  vector_operand(graph, node, 2, "report", DType::f64);
  std::vector<OutputType> types = {type_of(weights)};
  for (int i = 3; i < static_cast<int>(node.inputs.size()); ++i) {
    const Value& moment = operand(graph, node, i, "moment");
    expect_dtype(moment, gradient.dtype, "moment");
    expect_shape(moment, gradient.shape, "moment");
    types.push_back(type_of(moment));
  }
  types.push_back(type_of(gradient));
  return types;
}

OpDef step_def(std::vector<OutputType> (*infer)(const Graph&, const Node&), std::vector<std::pair<int, int>> in_place) {
  OpDef def;
  def.infer = infer;
  def.in_place = std::move(in_place);
  return def;
}

}  // namespace

OpDef record_loss_def() { return step_def(infer_record_loss, {{0, 2}}); }
OpDef record_output_def() {
  OpDef def = step_def(infer_record_output, {{0, 1}});
  def.accepts = [](const Graph&, const Node&, int input, const Shape&, const Strides&) { return input == 0; };
  return def;
}
OpDef fill_padding_def() { return step_def(infer_fill_padding, {}); }
OpDef fold_metrics_def() { return step_def(infer_fold_metrics, {{0, 1}, {1, 0}}); }
OpDef grad_norm_def() { return step_def(infer_grad_norm, {{0, 2}}); }
OpDef clip_factor_def() { return step_def(infer_clip_factor, {{0, 1}, {1, 0}, {2, 2}, {3, 3}}); }
// Weights first, then each moment, then the gradient, which comes last whatever the number of moments (0 to 3).
OpDef optimizer_update_def() { return step_def(infer_optimizer_update, {{0, 0}, {1, 3}, {2, 4}, {3, 5}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}); }

}  // namespace zeroplan
