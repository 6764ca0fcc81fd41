#include "passes/lower/storage_groups.h"

#include <algorithm>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "passes/lower/in_place.h"

namespace zeroplan {
namespace {

class Grouper {
 public:
  Grouper(const Graph& graph, const CompileOptions& options) : graph_(graph), options_(options), in_place_(graph, out_) {
    out_.layouts = value_layouts(graph);
    out_.places.resize(graph.values.size());
    out_.in_place.resize(graph.nodes.size());
    out_.buffer_of.assign(graph.nodes.size(), kNone);
    out_.workspace_of.assign(graph.nodes.size(), kNone);
    members_.reserve(graph.values.size());
  }

  StorageGroups run() {
    number_steps();
    place_leaves();
    place_buffers();
    for (const StateUpdate& update : graph_.state_updates) put(update.to, out_.places[update.from]);
    in_place_.find_last_reads();
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (out_.step_of[id] != kNone) place_outputs(id);
    find_lifetimes();
    return std::move(out_);
  }

 private:
  void number_steps() {
    for (const Node& node : graph_.nodes)
      out_.step_of.push_back(op_class(node.op) == OpClass::view ? kNone : out_.steps[static_cast<int>(node.program)]++);
  }

  int64_t bytes_of(ValueId id) const { return elements(graph_.values[id].shape) * dtype_bytes(graph_.values[id].dtype); }

  int32_t add_group(TensorKind kind, Arena arena, Program program, int64_t bytes, int32_t unit, ValueId owner = kNone) {
    StorageGroup group;
    group.kind = kind;
    group.arena = arena;
    group.program = program;
    group.bytes = bytes;
    group.unit = unit;
    group.owner = owner;
    out_.groups.push_back(group);
    members_.emplace_back();
    return static_cast<int32_t>(out_.groups.size()) - 1;
  }

  void put(ValueId value, Place place) {
    out_.places[value] = place;
    members_[place.group].push_back(value);
  }

  void place_leaf(ValueId id, TensorKind kind, Arena arena) {
    if (id == kNone || out_.places[id].group != kNone) return;
    put(id, {add_group(kind, arena, Program::micro_step, bytes_of(id), graph_.values[id].unit, id), 0});
  }

  // State and carried gradients in the order of the units, then what belongs to none; constants that some step reads; all inputs.
  void place_leaves() {
    for (const Unit& unit : graph_.units) place_leaf(unit.weights_state, TensorKind::weights, Arena::state);
    for (const Unit& unit : graph_.units) {
      place_leaf(unit.gradient_shard, TensorKind::gradients, unit.carried ? Arena::transient : Arena::state);
      place_leaf(unit.gradient_full, TensorKind::gradients, Arena::state);
    }
    for (const Unit& unit : graph_.units)
      for (size_t i = 0; i < unit.moments.size(); ++i)
        place_leaf(unit.moments[i], i == 0 && has_master(unit) ? TensorKind::master : TensorKind::moments, Arena::state);
    for (const Node& node : graph_.nodes)
      if (node.op == OpKind::record_output) place_leaf(node.inputs[1], TensorKind::output, Arena::state);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (graph_.values[id].kind == ValueKind::state && graph_.values[id].unit == kNone) place_leaf(id, TensorKind::metrics, Arena::state);
    for (const Node& node : graph_.nodes)
      for (ValueId input : node.inputs)
        if (input != kNone && graph_.values[input].kind == ValueKind::constant) place_leaf(input, TensorKind::constant, Arena::state);
    for (ValueId input : graph_.inputs) place_leaf(input, TensorKind::input, Arena::staging);
  }

  // The outputs of a node, or some of its inputs, side by side as the unit's parameters lie.
  void put_members(const Unit& unit, DType dtype, std::span<const ValueId> values, int32_t group) {
    for (size_t i = 0; i < unit.parameters.size(); ++i) put(values[i], {group, unit.parameters[i].offset * dtype_bytes(dtype)});
  }

  void place_buffers() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.unit == kNone) continue;
      const Unit& unit = graph_.units[node.unit];
      const auto whole = [&](DType dtype) { return unit.padded_elements * dtype_bytes(dtype); };
      const auto copy = [&] { return weight_copy(unit, graph_.values[node.inputs[0]].dtype); };
      int32_t& buffer = out_.buffer_of[id];
      if (node.op == OpKind::unit_view) {
        buffer = out_.places[node.inputs[0]].group;
        put_members(unit, graph_.values[node.inputs[0]].dtype, node.outputs, buffer);
      } else if (node.op == OpKind::gather_weights && copy().placement == Placement::sharded) {
        buffer = add_group(TensorKind::slot, Arena::transient, node.program, whole(copy().dtype), node.unit);
        out_.groups[buffer].dtype = copy().dtype;
        put_members(unit, copy().dtype, node.outputs, buffer);
      } else if (node.op == OpKind::gather_weights || node.op == OpKind::gather_gradient) {
        buffer = out_.places[node.op == OpKind::gather_gradient ? unit.gradient_full : unit.weights_state].group;
        put(node.outputs[0], {buffer, 0});
      } else if (node.op == OpKind::free_unit || node.op == OpKind::export_unit) {
        buffer = out_.places[out_.layouts[node.inputs[0]].root].group;
      } else if (node.op == OpKind::reduce_scatter) {
        buffer = reduces_in_state(unit)
                     ? out_.places[unit.gradient_full].group
                     : add_group(TensorKind::reduce_buffer, Arena::transient, node.program, whole(unit.reduce_dtype), node.unit);
        out_.groups[buffer].dtype = unit.reduce_dtype;
        put_members(unit, unit.reduce_dtype, std::span(node.inputs).subspan(1), buffer);
        if (node.inputs.size() > unit.parameters.size() + 1) put(node.inputs.back(), {buffer, 0});
      }
    }
  }

  void place_outputs(NodeId id) {
    const Node& node = graph_.nodes[id];
    out_.in_place[id] = in_place_.pairs(id);
    for (const auto& [output, input] : out_.in_place[id]) share(node.outputs[output], out_.layouts[node.inputs[input]].root);
    for (ValueId output : node.outputs)
      if (out_.places[output].group == kNone)
        put(output, {add_group(TensorKind::activation, Arena::transient, node.program, bytes_of(output), kNone), 0});
    const int64_t scratch = workspace_bytes(graph_, node, options_.device, options_.threads);
    if (scratch > 0) out_.workspace_of[id] = add_group(TensorKind::workspace, Arena::transient, node.program, scratch, kNone);
  }

  // The output takes the operand's bytes; where the output has a fixed place already, the operand and its predecessors move there.
  void share(ValueId output, ValueId operand) {
    if (out_.places[output].group == kNone) return put(output, out_.places[operand]);
    const Place from = out_.places[operand], to = out_.places[output];
    if (from.group == to.group) return;
    check(out_.groups[from.group].kind == TensorKind::activation, "only activations move to the place of their successor");
    for (ValueId member : members_[from.group]) out_.places[member] = to;
    members_[to.group].insert(members_[to.group].end(), members_[from.group].begin(), members_[from.group].end());
    members_[from.group].clear();
    out_.groups[from.group].bytes = 0;
  }

  void touch(int32_t group, int position) {
    if (group == kNone) return;
    StorageGroup& g = out_.groups[group];
    g.first = g.first < 0 ? position : std::min(g.first, position);
    g.last = std::max(g.last, position);
  }

  void find_lifetimes() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      if (out_.step_of[id] == kNone) continue;
      const int position = out_.position(graph_.nodes[id].program, out_.step_of[id]);
      for (ValueId input : graph_.nodes[id].inputs)
        if (input != kNone) touch(out_.places[out_.layouts[input].root].group, position);
      for (ValueId output : graph_.nodes[id].outputs) touch(out_.places[output].group, position);
      touch(out_.buffer_of[id], position);
      touch(out_.workspace_of[id], position);
    }
  }

  const Graph& graph_;
  const CompileOptions& options_;
  StorageGroups out_;
  InPlace in_place_;
  std::vector<std::vector<ValueId>> members_;  // by group
};

}  // namespace

StorageGroups group_storage(const Graph& graph, const CompileOptions& options) { return Grouper(graph, options).run(); }

}  // namespace zeroplan
