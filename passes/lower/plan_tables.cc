#include "passes/lower/plan_tables.h"

#include "base/error.h"

namespace zeroplan {

PlanTables::PlanTables(const Graph& graph, const StorageGroups& storage, Plan& plan)
    : graph_(graph),
      storage_(storage),
      plan_(plan),
      tensor_of_(graph.values.size(), kNone),
      value_of_(graph.values.size(), kNone),
      whole_of_(storage.groups.size(), kNone),
      parameter_value_(graph.parameters.size(), kNone) {
  for (const SourceNode& node : graph.source) {
    SourceNode mapped = node;
    for (ValueId& input : mapped.inputs) input = this->value(input);
    for (ValueId& output : mapped.outputs) output = this->value(output);
    plan_.source.push_back(std::move(mapped));
  }
  for (const auto& [parameter, gradient] : graph.gradients) plan_.gradients.emplace_back(parameter, this->value(gradient));
}

Operand PlanTables::operand(ValueId value) { return value == kNone ? Operand{} : Operand{tensor(value), this->value(value)}; }

int32_t PlanTables::add_tensor(PlanTensor tensor, const StorageGroup& group) {
  tensor.kind = group.kind;
  tensor.arena = group.arena;
  tensor.offset += group.offset;
  if (tensor.unit == kNone) tensor.unit = group.unit;
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<int32_t>(plan_.tensors.size()) - 1;
}

int32_t PlanTables::tensor(ValueId id) {
  if (tensor_of_[id] != kNone) return tensor_of_[id];
  const Layout& layout = storage_.layouts[id];
  const Place place = storage_.places[layout.root];
  check(place.group != kNone && layout.possible, "every operand has a place");
  const StorageGroup& group = storage_.groups[place.group];
  const Value& value = graph_.values[id];
  // All contents of a state are seen through its one tensor.
  if (group.owner != kNone && group.owner != id && layout.root == id && place.offset == 0 &&
      value.shape == graph_.values[group.owner].shape)
    return tensor_of_[id] = tensor(group.owner);
  // The token of fill_padding stands for the whole reduce buffer.
  const bool token = group.kind == TensorKind::reduce_buffer && layout.root == id && value.parameter == kNone && value.unit != kNone;
  if (token) return tensor_of_[id] = whole_tensor(place.group);
  PlanTensor tensor;
  tensor.name = value.name;
  tensor.dtype = value.dtype;
  tensor.shape = value.shape;
  tensor.strides = layout.strides;
  tensor.offset = place.offset + layout.offset * dtype_bytes(value.dtype);
  tensor.origin = origin(id);
  return tensor_of_[id] = add_tensor(std::move(tensor), group);
}

std::string PlanTables::origin(ValueId id) const {
  const Value& value = graph_.values[id];
  if (value.parameter != kNone) return graph_.parameters[value.parameter].name;
  return value.producer == kNone ? std::string{} : graph_.nodes[value.producer].origin;
}

int32_t PlanTables::whole_tensor(int32_t id) {
  const StorageGroup& group = storage_.groups[id];
  if (group.owner != kNone) return tensor(group.owner);
  if (whole_of_[id] != kNone) return whole_of_[id];
  const Unit& unit = graph_.units[group.unit];
  PlanTensor tensor;
  const bool slot = group.kind == TensorKind::slot;
  tensor.name = unit.name + (slot ? ".slot" : ".reduce");
  tensor.dtype = group.dtype;
  tensor.shape = {unit.padded_elements};
  tensor.strides = {1};
  tensor.origin = unit.name;
  return whole_of_[id] = add_tensor(std::move(tensor), group);
}

int32_t PlanTables::own_part(int32_t id) {
  if (const auto known = own_part_of_.find(id); known != own_part_of_.end()) return known->second;
  const Unit& unit = graph_.units[id];
  PlanTensor tensor;
  tensor.name = unit.name + ".own";
  tensor.dtype = unit.dtype;
  tensor.shape = {unit.shard_elements};
  tensor.strides = {1};
  tensor.per_rank = true;
  tensor.unit = id;
  tensor.origin = unit.name;
  return own_part_of_[id] = add_tensor(std::move(tensor), storage_.groups[storage_.places[unit.weights_state].group]);
}

int32_t PlanTables::workspace_tensor(int32_t id) {
  if (id == kNone) return kNone;
  PlanTensor tensor;
  tensor.name = "workspace";
  tensor.dtype = DType::u8;
  tensor.shape = {storage_.groups[id].bytes};
  tensor.strides = {1};
  return add_tensor(std::move(tensor), storage_.groups[id]);
}

int32_t PlanTables::new_value(const std::string& name) {
  plan_.values.push_back({name, kNone});
  return static_cast<int32_t>(plan_.values.size()) - 1;
}

int32_t PlanTables::parameter_value(const Value& leaf) {
  int32_t& index = parameter_value_[leaf.parameter];
  if (index != kNone) return index;
  index = new_value(leaf.name);
  plan_.values[index].parameter = leaf.parameter;
  return index;
}

int32_t PlanTables::value(ValueId id) {
  if (id == kNone) return kNone;
  if (value_of_[id] != kNone) return value_of_[id];
  const Value& value = graph_.values[id];
  if (value.copy_of != kNone) return value_of_[id] = this->value(value.copy_of);
  return value_of_[id] = value.kind == ValueKind::parameter ? parameter_value(value) : new_value(value.name);
}

}  // namespace zeroplan
