#include "passes/zero/unit_state.h"

#include "base/error.h"

namespace zeroplan {

ValueId add_state(Graph& graph, const std::string& name, DType dtype, const Shape& shape, int32_t unit) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.shape = shape;
  value.kind = ValueKind::state;
  value.unit = unit;
  return graph.add_value(std::move(value));
}

ValueId add_successor(Graph& graph, ValueId state, const std::string& name) {
  Value value = graph.values[state];
  value.kind = ValueKind::computed;
  value.producer = kNone;
  value.name = name.empty() ? value.name + "'" : name;
  return graph.add_value(std::move(value));
}

void add_unit_state(Graph& graph, int32_t id) {
  const std::string name = graph.units[id].name;
  const DType dtype = graph.units[id].dtype;
  const Shape shard = {graph.units[id].shard_elements}, whole = {graph.units[id].padded_elements};
  Unit& unit = graph.units[id];
  unit.weights_state = add_state(graph, name + ".weights", dtype, unit.weights == Placement::sharded ? shard : whole, id);
  if (!unit.trainable) return;
  unit.gradient_shard = add_state(graph, name + ".gradient", unit.gradient_dtype, shard, id);
  if (unit.gradients == Placement::replicated)
    unit.gradient_full =
        add_state(graph, name + ".gradient_full", reduces_in_state(unit) ? unit.reduce_dtype : unit.gradient_dtype, whole, id);
}

std::vector<ValueId> parameter_leaves(const Graph& graph) {
  std::vector<ValueId> leaves(graph.parameters.size(), kNone);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.values[id];
    if (value.kind == ValueKind::parameter && leaves[value.parameter] == kNone) leaves[value.parameter] = id;
  }
  return leaves;
}

std::vector<ValueId> add_gathered_copies(Graph& graph, int32_t unit, const std::vector<ValueId>& leaves, const std::string& suffix,
                                         DType dtype) {
  std::vector<ValueId> copies;
  for (const UnitParameter& member : graph.units[unit].parameters) {
    const Parameter& parameter = graph.parameters[member.parameter];
    Value value;
    value.name = parameter.name + suffix;
    value.dtype = dtype;
    value.shape = parameter.shape;
    value.parameter = member.parameter;
    value.unit = unit;
    value.copy_of = leaves[member.parameter];
    check(value.copy_of != kNone, "every parameter has a leaf");
    copies.push_back(graph.add_value(std::move(value)));
  }
  return copies;
}

}  // namespace zeroplan
