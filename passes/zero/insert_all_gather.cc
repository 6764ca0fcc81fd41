#include <map>

#include <fmt/format.h>

#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/views.h"
#include "passes/passes.h"
#include "passes/zero/unit_state.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {
namespace {

// Replaces what the nodes of one program read of parameters: leaves by gathered copies, views of leaves by views of the copies.
class Rewirer {
 public:
  Rewirer(Graph& graph, GraphEdits& edits, std::vector<int>& counts)
      : graph_(graph),
        edits_(edits),
        counts_(counts),
        shown_(shown_parameters(graph)),
        unit_of_(parameter_units(graph)),
        leaves_(parameter_leaves(graph)) {}

  // The interval's gather (or the unit's view of replicated weights) before its first use, and its uses rewired.
  void rewire(const UseInterval& interval) {
    const NodeId first = interval.uses.front();
    const Unit& unit = graph_.units[interval.unit];
    Node source = make_node(unit.weights == Placement::sharded ? OpKind::gather_weights : OpKind::unit_view, graph_.nodes[first].program,
                            {unit.weights_state}, interval.unit);
    source.backward = graph_.nodes[first].backward;
    source.reason = interval.reason;
    suffix_ = fmt::format("@{}", ++counts_[interval.unit]);
    copies_.clear();
    source.outputs = add_gathered_copies(graph_, interval.unit, leaves_, suffix_, unit.dtype);
    for (size_t i = 0; i < source.outputs.size(); ++i) gathered_[unit.parameters[i].parameter] = source.outputs[i];
    edits_.before(first, std::move(source));
    for (NodeId use : interval.uses) {
      std::vector<ValueId> inputs = graph_.nodes[use].inputs;  // copy: resolve() may add values, never nodes
      for (ValueId& input : inputs)
        if (reads(input, interval.unit)) input = resolve(input, use);
      graph_.nodes[use].inputs = std::move(inputs);
    }
  }

 private:
  // Values added here are rewired already: a node may read several units.
  bool reads(ValueId value, int32_t unit) const {
    return value != kNone && value < static_cast<ValueId>(shown_.size()) && shown_[value] != kNone && unit_of_[shown_[value]] == unit;
  }

  ValueId resolve(ValueId value, NodeId use) {
    if (graph_.values[value].kind == ValueKind::parameter) return gathered_.at(graph_.values[value].parameter);
    if (const auto known = copies_.find(value); known != copies_.end()) return known->second;
    const NodeId producer = graph_.values[value].producer;
    Node view = graph_.nodes[producer];
    view.inputs[0] = resolve(view.inputs[0], use);
    view.program = graph_.nodes[use].program;
    view.backward = graph_.nodes[use].backward;
    for (ValueId& output : view.outputs) {
      Value copy = graph_.values[output];
      copy.name += suffix_;
      copy.copy_of = output;
      copies_[output] = graph_.add_value(std::move(copy));
      output = copies_[output];
    }
    edits_.before(use, std::move(view));
    return copies_.at(value);
  }

  Graph& graph_;
  GraphEdits& edits_;
  std::vector<int>& counts_;
  std::vector<int32_t> shown_, unit_of_;
  std::vector<ValueId> leaves_;
  std::map<int32_t, ValueId> gathered_;  // of the interval at hand
  std::map<ValueId, ValueId> copies_;
  std::string suffix_;
};

// Units with replicated weights: one stretch per program.
std::vector<UseInterval> whole_program_uses(const Graph& graph, Program program) {
  const std::vector<int32_t> shown = shown_parameters(graph), unit_of = parameter_units(graph);
  std::vector<UseInterval> intervals;
  std::vector<int> interval_of(graph.units.size(), kNone);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.program != program || is_view(node)) continue;
    for (ValueId input : node.inputs) {
      const int32_t unit = input == kNone || shown[input] == kNone ? kNone : unit_of[shown[input]];
      if (unit == kNone || graph.units[unit].weights == Placement::sharded) continue;
      int& interval = interval_of[unit];
      if (interval == kNone) {
        interval = static_cast<int>(intervals.size());
        intervals.push_back({unit, {}, {}});
      }
      std::vector<NodeId>& uses = intervals[interval].uses;
      if (uses.empty() || uses.back() != id) uses.push_back(id);
    }
  }
  return intervals;
}

void erase_parameter_views(const Graph& graph, GraphEdits& edits) {
  const std::vector<int32_t> shown = shown_parameters(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    if (is_view(graph.nodes[id]) && shown[graph.nodes[id].inputs[0]] != kNone) edits.erase(id);
}

}  // namespace

bool insert_all_gather(Graph& graph, const CompileOptions& options) {
  if (graph.units.empty()) return false;
  for (int32_t unit = 0; unit < static_cast<int32_t>(graph.units.size()); ++unit) add_unit_state(graph, unit);
  const int max_live = max_live_units(graph, options);
  GraphEdits edits(graph);
  std::vector<int> counts(graph.units.size(), 0);
  erase_parameter_views(graph, edits);
  Rewirer rewirer(graph, edits, counts);
  for (Program program : {Program::micro_step, Program::eval_step}) {
    const std::vector<UseInterval> sharded = use_intervals(graph, program, options.prefetch, max_live);
    const std::vector<UseInterval> replicated = whole_program_uses(graph, program);
    for (const UseInterval& interval : sharded) rewirer.rewire(interval);
    for (const UseInterval& interval : replicated) rewirer.rewire(interval);
  }
  edits.apply();
  return true;
}

}  // namespace zeroplan
