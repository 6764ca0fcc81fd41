#include <algorithm>

#include "graph/ops/op_def.h"
#include "passes/lower/layouts.h"
#include "passes/passes.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {
namespace {

// Moves nodes towards their first reader where that cannot make anything live longer.
class Scheduler {
 public:
  explicit Scheduler(Graph& graph) : graph_(graph), roots_(view_roots(graph)), last_read_(graph.values.size(), kNone) {
    first_reader_.assign(graph.nodes.size(), kNone);
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
      for (ValueId input : graph.nodes[id].inputs) {
        if (input == kNone) continue;
        last_read_[roots_[input]] = id;
        const NodeId producer = graph.values[input].producer;
        if (producer != kNone && graph.nodes[producer].program == graph.nodes[id].program && first_reader_[producer] == kNone) first_reader_[producer] = id;
      }
  }

  bool run() {
    const NodeId count = static_cast<NodeId>(graph_.nodes.size());
    std::vector<std::vector<NodeId>> before(count);
    std::vector<bool> moved(count, false);
    bool changed = false;
    for (NodeId id = 0; id < count; ++id) target_.push_back(id);
    for (NodeId id = count - 1; id >= 0; --id) {  // readers first: a chain of views follows its end
      const NodeId reader = first_reader_[id];
      if (reader == kNone || !may_sink(id, reader)) continue;
      target_[id] = target_[reader];
      if (reader == id + 1 && !moved[reader]) continue;
      before[reader].push_back(id);
      moved[id] = true;
    }
    std::vector<Node> order;
    const auto emit = [&](auto& self, NodeId id) -> void {
      std::sort(before[id].begin(), before[id].end());
      for (NodeId early : before[id]) self(self, early);
      changed = changed || id != static_cast<NodeId>(order.size());
      order.push_back(graph_.nodes[id]);
    };
    for (NodeId id = 0; id < count; ++id)
      if (!moved[id]) emit(emit, id);
    graph_.nodes = std::move(order);
    graph_.reindex();
    return changed;
  }

 private:
  // Views and fills cost nothing where they stand; a step may wait where all that it reads lives at least until its reader.
  bool may_sink(NodeId id, NodeId reader) const {
    const Node& node = graph_.nodes[id];
    if (is_view(node) || node.op == OpKind::fill) return true;
    if (op_class(node.op) != OpClass::kernel || node.unit != kNone || node.outputs.size() != 1) return false;
    for (ValueId input : node.inputs)
      if (input != kNone && !outlives(input, target_[reader])) return false;
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
  std::vector<NodeId> last_read_;     // by root value
  std::vector<NodeId> first_reader_;  // by node
  std::vector<NodeId> target_;        // by node: the node that it ends up in front of, or itself
};

}  // namespace

bool schedule(Graph& graph, const CompileOptions&) { return Scheduler(graph).run(); }

}  // namespace zeroplan
