#include <algorithm>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/passes.h"
#include "passes/zero/unit_state.h"

namespace zeroplan {
namespace {

class Reducer {
 public:
  explicit Reducer(Graph& graph) : graph_(graph), edits_(graph), owned_(graph.values.size(), false), readers_(graph.users()) {}

  void reduce(int32_t id) {
    const Unit& unit = graph_.units[id];
    NodeId last = kNone;
    std::vector<ValueId> gradients;
    std::vector<Node> copies;
    for (const UnitParameter& member : unit.parameters) {
      const ValueId gradient = graph_.gradients.at(member.parameter);
      last = std::max(last, position_of(gradient));
      gradients.push_back(own_value(gradient, member.parameter, id, copies));
    }
    for (Node& copy : copies) edits_.after(last, std::move(copy));
    std::vector<ValueId> inputs = {unit.carried ? kNone : unit.gradient_shard};
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    inputs.push_back(add_padding(id, gradients, last));
    Node scatter = make_node(OpKind::reduce_scatter, Program::micro_step, inputs, id);
    scatter.backward = true;
    scatter.reason = "last contribution to the unit's gradients";
    scatter.outputs = {add_successor(graph_, unit.gradient_shard)};
    graph_.state_updates.push_back({Program::micro_step, unit.gradient_shard, scatter.outputs[0]});
    edits_.after(last, std::move(scatter));
  }

  bool apply() { return edits_.apply(); }

 private:
  // The node after which the value exists; the first one of the program for a leaf.
  NodeId position_of(ValueId gradient) const {
    if (graph_.values[gradient].producer != kNone) return graph_.values[gradient].producer;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (graph_.nodes[id].program == Program::micro_step) return id;
    throw Error("the training graph has no nodes: the loss depends on no parameter");
  }

  // Can the value lie in the reduce buffer itself? A fill that others read too may have been shared by cse.
  bool can_be_placed(ValueId gradient) const {
    const Value& value = graph_.values[gradient];
    if (value.kind != ValueKind::computed || value.producer == kNone || owned_[gradient]) return false;
    const OpKind op = graph_.nodes[value.producer].op;
    if (op == OpKind::fill && !readers_[gradient].empty()) return false;
    return op_class(op) == OpClass::kernel && graph_.nodes[value.producer].program == Program::micro_step;
  }

  ValueId own_value(ValueId gradient, int32_t parameter, int32_t unit, std::vector<Node>& copies) {
    if (can_be_placed(gradient)) {
      owned_[gradient] = true;
      graph_.values[gradient].parameter = parameter;
      graph_.values[gradient].unit = unit;
      return gradient;
    }
    Node copy = make_node(OpKind::copy, Program::micro_step, {gradient}, unit);
    copy.backward = true;
    copy.reason = "gradient needs a place of its own in the reduce buffer";
    Value value;
    value.name = graph_.parameters[parameter].name + ".gradient_copy";
    value.dtype = graph_.values[gradient].dtype;
    value.shape = graph_.values[gradient].shape;
    value.parameter = parameter;
    value.unit = unit;
    copy.outputs = {graph_.add_value(std::move(value))};
    owned_.resize(graph_.values.size(), true);
    copies.push_back(copy);
    return copy.outputs[0];
  }

  // Also where there are no gaps: how many there are depends on the number of ranks, the steps of a plan do not.
  ValueId add_padding(int32_t id, const std::vector<ValueId>& gradients, NodeId last) {
    const Unit& unit = graph_.units[id];
    Node padding = make_node(OpKind::fill_padding, Program::micro_step, gradients, id);
    padding.backward = true;
    Value token;
    token.name = unit.name + ".reduced";
    token.dtype = unit.reduce_dtype;
    token.shape = {unit.padded_elements};
    token.unit = id;
    const ValueId full = reduces_in_state(unit) ? unit.gradient_full : kNone;
    padding.outputs = {graph_.add_value(std::move(token))};
    if (full != kNone) graph_.state_updates.push_back({Program::micro_step, full, padding.outputs[0]});
    const ValueId result = padding.outputs[0];
    edits_.after(last, std::move(padding));
    return result;
  }

  Graph& graph_;
  GraphEdits edits_;
  std::vector<bool> owned_;  // by value: already has a place in a reduce buffer
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

bool insert_reduce_scatter(Graph& graph, const CompileOptions&) {
  Reducer reducer(graph);
  const int32_t units = static_cast<int32_t>(graph.units.size());
  for (int32_t unit = 0; unit < units; ++unit)
    if (graph.units[unit].trainable) reducer.reduce(unit);
  return reducer.apply();
}

}  // namespace zeroplan
