#include "passes/zero/program_builder.h"

#include <fmt/format.h>

#include "graph/ops/op_def.h"
#include "passes/train/loss_scale.h"
#include "passes/zero/unit_state.h"

namespace zeroplan {

ValueId ProgramBuilder::now(ValueId state) const {
  const auto known = now_.find(state);
  return known == now_.end() ? state : known->second;
}

void ProgramBuilder::append(Node node) { edits_.append(std::move(node)); }

void ProgramBuilder::change(Node node, const std::vector<ValueId>& changed) {
  for (ValueId state : changed) {
    node.outputs.push_back(add_successor(graph_, state, fmt::format("{}.{}", graph_.values[state].name, program_name(program_))));
    now_[state] = node.outputs.back();
  }
  append(std::move(node));
}

void ProgramBuilder::fill(ValueId state, double value) {
  Node fill = node(OpKind::fill, {}, graph_.values[state].unit);
  fill.attributes = fill_attributes(value, graph_.values[state].shape, graph_.values[state].dtype);
  change(std::move(fill), {state});
}

void ProgramBuilder::finish() {
  for (const auto& [state, value] : now_) graph_.state_updates.push_back({program_, state, value});
}

void build_load(Graph& graph, GraphEdits& edits, const std::vector<ValueId>& zeroed) {
  ProgramBuilder load(graph, edits, Program::load);
  for (int32_t id = 0; id < static_cast<int32_t>(graph.units.size()); ++id) {
    const Unit& unit = graph.units[id];
    std::vector<ValueId> filled = {unit.weights_state};
    filled.insert(filled.end(), unit.moments.begin(), unit.moments.end());
    if (unit.gradient_shard != kNone && !unit.carried) filled.push_back(unit.gradient_shard);
    load.change(load.node(OpKind::load_unit, {}, id), filled);
    if (unit.gradient_full != kNone) load.zero(unit.gradient_full);
  }
  for (ValueId state : zeroed) load.zero(state);
  if (graph.loss.scale != kNone) load.fill(graph.loss.scale, first_loss_scale(graph));
  load.finish();
}

void build_save(Graph& graph, GraphEdits& edits) {
  ProgramBuilder save(graph, edits, Program::save);
  const std::vector<ValueId> leaves = parameter_leaves(graph);
  for (int32_t id = 0; id < static_cast<int32_t>(graph.units.size()); ++id) {
    const Unit& unit = graph.units[id];
    const ValueId kept = has_master(unit) ? unit.moments[0] : unit.weights_state;
    const WeightCopy copy = weight_copy(unit, graph.values[kept].dtype);
    const bool sharded = copy.placement == Placement::sharded;
    Node source = save.node(sharded ? OpKind::gather_weights : OpKind::unit_view, {kept}, id);
    const std::vector<ValueId> copies = add_gathered_copies(graph, id, leaves, "@save", copy.dtype);
    source.outputs = copies;
    save.append(std::move(source));
    save.append(save.node(OpKind::export_unit, copies, id));
    if (sharded) save.append(save.node(OpKind::free_unit, copies, id));
  }
}

}  // namespace zeroplan
