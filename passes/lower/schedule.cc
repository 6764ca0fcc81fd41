#include <algorithm>

#include "graph/ops/op_def.h"
#include "passes/edit/views.h"
#include "passes/lower/layouts.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

// Moves nodes in front of their first reader where that cannot make anything live longer.
class Scheduler {
 public:
  explicit Scheduler(Graph& graph)
      : graph_(graph),
        roots_(view_roots(graph)),
        readers_(graph.users()),
        last_read_(graph.values.size(), kNone),
        target_(graph.nodes.size(), kNone) {
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
      for (ValueId input : graph.nodes[id].inputs)
        if (input != kNone) last_read_[roots_[input]] = id;
  }

  bool run() {
    const NodeId count = static_cast<NodeId>(graph_.nodes.size());
    std::vector<std::vector<NodeId>> before(count);
    for (NodeId id = count - 1; id >= 0; --id) {  // readers first: a chain of views follows its end
      const NodeId reader = first_reader(id);
      target_[id] = reader != kNone && may_sink(id, reader) ? reader : id;
      if (target_[id] != id) before[target_[id]].push_back(id);
    }
    std::vector<Node> order;
    bool changed = false;
    const auto emit = [&](NodeId id) {
      changed = changed || id != static_cast<NodeId>(order.size());
      order.push_back(graph_.nodes[id]);
    };
    for (NodeId id = 0; id < count; ++id) {
      if (target_[id] != id) continue;
      for (auto early = before[id].rbegin(); early != before[id].rend(); ++early) emit(*early);
      emit(id);
    }
    graph_.nodes = std::move(order);
    graph_.reindex();
    return changed;
  }

 private:
  // Where the first of its readers in the program ends up; kNone without one.
  NodeId first_reader(NodeId id) const {
    NodeId first = kNone;
    for (ValueId output : graph_.nodes[id].outputs)
      for (NodeId reader : readers_[output])
        if (graph_.nodes[reader].program == graph_.nodes[id].program && (first == kNone || target_[reader] < first))
          first = target_[reader];
    return first;
  }

  // Views and fills cost nothing where they stand; a step may wait where all that it reads lives at least until its reader.
  bool may_sink(NodeId id, NodeId reader) const {
    const Node& node = graph_.nodes[id];
    if (is_view(node) || node.op == OpKind::fill) return true;
    if (op_class(node.op) != OpClass::kernel || node.unit != kNone || node.outputs.size() != 1) return false;
    for (ValueId input : node.inputs)
      if (input != kNone && !outlives(input, reader)) return false;
    return true;
  }

  bool outlives(ValueId value, NodeId target) const {
    const Value& root = graph_.values[roots_[value]];
    if (root.kind == ValueKind::constant || root.kind == ValueKind::input) return true;
    if (root.kind != ValueKind::computed || root.producer == kNone) return false;
    if (op_class(graph_.nodes[root.producer].op) != OpClass::kernel) return false;  // gathered weights
    return last_read_[roots_[value]] >= target && !is_final(roots_[value]);
  }

  bool is_final(ValueId value) const { return graph_.values[value].unit != kNone; }

  Graph& graph_;
  std::vector<ValueId> roots_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<NodeId> last_read_;  // by root value
  std::vector<NodeId> target_;     // by node: the node that it ends up in front of, or itself
};

}  // namespace

bool schedule(Graph& graph, const CompileOptions&) { return Scheduler(graph).run(); }

}  // namespace zeroplan
