// Operators on whole units: unit_view, the collectives, and the host's load and export. They need the node's unit.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

const Unit& unit_of(const Graph& graph, const Node& node) {
  if (node.unit < 0 || node.unit >= static_cast<int32_t>(graph.units.size())) throw Error("belongs to no unit");
  return graph.units[node.unit];
}

std::vector<OutputType> parameter_types(const Graph& graph, const Unit& unit, DType dtype) {
  std::vector<OutputType> types;
  for (const UnitParameter& member : unit.parameters) types.push_back({dtype, graph.parameters[member.parameter].shape});
  return types;
}

void expect_parameters(const Graph& graph, const Node& node, const Unit& unit, DType dtype, int first) {
  for (size_t i = 0; i < unit.parameters.size(); ++i) {
    const Value& value = operand(graph, node, first + static_cast<int>(i), "value of a parameter");
    expect_dtype(value, dtype, "value of a parameter");
    expect_shape(value, graph.parameters[unit.parameters[i].parameter].shape, "value of a parameter");
  }
}

// Operand i of the node, a flat buffer of the unit.
const Value& flat_operand(const Graph& graph, const Node& node, int i, std::string_view what, DType dtype, int64_t elements) {
  const Value& value = operand(graph, node, i, what);
  expect_dtype(value, dtype, what);
  expect_shape(value, {elements}, what);
  return value;
}

std::vector<OutputType> infer_unit_view(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Unit& unit = unit_of(graph, node);
  const WeightCopy copy = weight_copy(unit, operand(graph, node, 0, "weights").dtype);
  flat_operand(graph, node, 0, "weights", copy.dtype, unit.padded_elements);
  return parameter_types(graph, unit, copy.dtype);
}

// Sharded weights: shard → parameters. Replicated weights, of which each rank has updated its own part: whole buffer → the same, in place.
std::vector<OutputType> infer_gather_weights(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Unit& unit = unit_of(graph, node);
  const WeightCopy copy = weight_copy(unit, operand(graph, node, 0, "weights").dtype);
  const bool sharded = copy.placement == Placement::sharded;
  const Value& buffer = flat_operand(graph, node, 0, "weights", copy.dtype, sharded ? unit.shard_elements : unit.padded_elements);
  return sharded ? parameter_types(graph, unit, copy.dtype) : std::vector<OutputType>{{buffer.dtype, buffer.shape}};
}

// gradient shard → whole gradient buffer
std::vector<OutputType> infer_gather_gradient(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Unit& unit = unit_of(graph, node);
  const Value& shard = flat_operand(graph, node, 0, "gradient shard", unit.gradient_dtype, unit.shard_elements);
  return {{shard.dtype, {unit.padded_elements}}};
}

// gradient shard (left out where it is carried: the fold starts from zero), gradients of the unit in order, and the token of
// fill_padding where there is one.
std::vector<OutputType> infer_reduce_scatter(const Graph& graph, const Node& node) {
  const Unit& unit = unit_of(graph, node);
  const int count = static_cast<int>(unit.parameters.size());
  expect_inputs(node, 1 + count, 2 + count);
  if (has_input(node, 0)) flat_operand(graph, node, 0, "gradient shard", unit.gradient_dtype, unit.shard_elements);
  expect_parameters(graph, node, unit, unit.reduce_dtype, 1);
  if (has_input(node, 1 + count)) expect_shape(operand(graph, node, 1 + count, "padding token"), {unit.padded_elements}, "padding token");
  return {{unit.gradient_dtype, {unit.shard_elements}}};
}

std::vector<OutputType> infer_all_reduce(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  return {{x.dtype, x.shape}};
}

std::vector<OutputType> infer_parameters_in(const Graph& graph, const Node& node) {
  const Unit& unit = unit_of(graph, node);
  const int count = static_cast<int>(unit.parameters.size());
  expect_inputs(node, count, count);
  if (count > 0) expect_parameters(graph, node, unit, weight_copy(unit, operand(graph, node, 0, "value of a parameter").dtype).dtype, 0);
  return {};
}

// → weights, moments… (the master first, where there is one), gradient shard unless it is carried: the state that the unit has.
std::vector<OutputType> infer_load_unit(const Graph& graph, const Node& node) {
  expect_inputs(node, 0, 0);
  const Unit& unit = unit_of(graph, node);
  std::vector<ValueId> states = {unit.weights_state};
  states.insert(states.end(), unit.moments.begin(), unit.moments.end());
  if (unit.gradient_shard != kNone && !unit.carried) states.push_back(unit.gradient_shard);
  std::vector<OutputType> types;
  for (const ValueId state : states) {
    if (state == kNone) throw Error(fmt::format("unit '{}' has no state to load", unit.name));
    types.push_back({graph.value(state).dtype, graph.value(state).shape});
  }
  return types;
}

// The sum is over ranks: each rank's operand is in every rank's result. On bytes of its own, as the step works in place.
void all_reduce_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::all_reduce, {c.build.add(OpKind::copy, {c.output_gradient()})})); }

OpDef unit_def(std::vector<OutputType> (*infer)(const Graph&, const Node&), std::vector<std::pair<int, int>> in_place = {}) {
  OpDef def;
  def.infer = infer;
  def.in_place = std::move(in_place);
  return def;
}

}  // namespace

OpDef unit_view_def() { return unit_def(infer_unit_view); }
OpDef gather_weights_def() { return unit_def(infer_gather_weights, {{0, 0}}); }
OpDef gather_gradient_def() { return unit_def(infer_gather_gradient); }
OpDef reduce_scatter_def() { return unit_def(infer_reduce_scatter, {{0, 0}}); }
OpDef all_reduce_def() {
  OpDef def = unit_def(infer_all_reduce, {{0, 0}});
  def.vjp = all_reduce_vjp;
  return def;
}
OpDef free_unit_def() { return unit_def(infer_parameters_in); }
OpDef load_unit_def() { return unit_def(infer_load_unit); }
OpDef export_unit_def() { return unit_def(infer_parameters_in); }

}  // namespace zeroplan
