#include "passes/lower/emit_steps.h"

#include "passes/lower/assign_streams.h"
#include "passes/lower/cost_model.h"

namespace zeroplan {
namespace {

StepKind step_kind(OpKind op) {
  switch (op) {
    case OpKind::gather_weights:
    case OpKind::gather_gradient: return StepKind::all_gather;
    case OpKind::reduce_scatter: return StepKind::reduce_scatter;
    case OpKind::all_reduce: return StepKind::all_reduce;
    case OpKind::free_unit: return StepKind::free;
    case OpKind::load_unit:
    case OpKind::export_unit: return StepKind::host;
    default: return StepKind::kernel;
  }
}

}  // namespace

StepEmitter::StepEmitter(const Graph& graph, const StorageGroups& storage, PlanTables& tables, int ranks)
    : graph_(graph),
      storage_(storage),
      tables_(tables),
      ranks_(ranks),
      whole_value_(storage.groups.size(), kNone),
      gathers_(graph.units.size(), 0) {}

Step StepEmitter::emit(NodeId id) {
  const Node& node = graph_.nodes[id];
  Step step;
  step.kind = step_kind(node.op);
  step.op = node.op;
  step.stream = stream_of(node.op);
  step.attributes = node.attributes;
  step.unit = node.unit;
  step.origin = node.origin;
  step.reason = node.reason;
  step.in_place = storage_.in_place[id];
  step.predicted_us = predict_us(graph_, node, ranks_);
  fill_operands(id, step);
  step.workspace.tensor = tables_.workspace_tensor(storage_.workspace_of[id]);
  return step;
}

void StepEmitter::fill_operands(NodeId id, Step& step) {
  const Node& node = graph_.nodes[id];
  switch (node.op) {
    case OpKind::gather_weights: return gather_weights(id, step);
    case OpKind::reduce_scatter: return reduce_scatter(id, step);
    case OpKind::free_unit:
    case OpKind::export_unit: step.inputs = {whole(id)}; return;
    default: break;
  }
  for (ValueId input : node.inputs) step.inputs.push_back(tables_.operand(input));
  for (ValueId output : node.outputs) step.outputs.push_back(tables_.operand(output));
  if (node.op == OpKind::optimizer_update) optimizer_update(id, step);
}

// The whole buffer that the node is about, with the value that stands for all of it.
Operand StepEmitter::whole(NodeId id) {
  const int32_t group = storage_.buffer_of[id];
  const ValueId state = storage_.groups[group].owner;
  return {tables_.whole_tensor(group), state != kNone ? tables_.value(state) : whole_value_[group]};
}

void StepEmitter::gather_weights(NodeId id, Step& step) {
  const Node& node = graph_.nodes[id];
  const Unit& unit = graph_.units[node.unit];
  step.inputs = {tables_.operand(node.inputs[0])};
  if (weight_copy(unit, graph_.values[node.inputs[0]].dtype).placement == Placement::replicated) {  // filled from each rank's own part
    step.inputs[0].tensor = tables_.own_part(node.unit);
    step.outputs = {tables_.operand(node.outputs[0])};
    return;
  }
  const int32_t group = storage_.buffer_of[id];
  const std::string copy = node.program == Program::save ? "save" : std::to_string(++gathers_[node.unit]);
  whole_value_[group] = tables_.new_value(unit.name + "@" + copy);
  step.outputs = {whole(id)};
  for (ValueId output : node.outputs) step.outputs.push_back(tables_.operand(output));
}

void StepEmitter::reduce_scatter(NodeId id, Step& step) {
  const Node& node = graph_.nodes[id];
  const size_t parameters = graph_.units[node.unit].parameters.size();
  const bool padded = node.inputs.size() > parameters + 1;
  step.inputs = {tables_.operand(node.inputs[0])};
  step.inputs.push_back({tables_.whole_tensor(storage_.buffer_of[id]), padded ? tables_.value(node.inputs.back()) : kNone});
  for (size_t i = 0; i < parameters; ++i) step.inputs.push_back(tables_.operand(node.inputs[1 + i]));
  step.outputs = {tables_.operand(node.outputs[0])};
}

// Replicated weights with a sharded optimizer: the kernel sees the rank's own part.
void StepEmitter::optimizer_update(NodeId id, Step& step) {
  const Node& node = graph_.nodes[id];
  const Unit& unit = graph_.units[node.unit];
  if (unit.weights == unit.optimizer) return;
  step.inputs[0].tensor = step.outputs[0].tensor = tables_.own_part(node.unit);
}

}  // namespace zeroplan
