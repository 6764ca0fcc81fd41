#include <algorithm>
#include <map>

#include "graph/ops/elementwise.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/live_bytes.h"
#include "passes/edit/reads.h"
#include "passes/edit/views.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

constexpr int64_t kSmallest = 4096;  // bytes below which an activation is not worth a step
constexpr int kLongest = 12;         // cheap nodes in a row

bool is_cheap(OpKind op) { return is_elementwise(op) || op == OpKind::layer_norm || op == OpKind::rms_norm; }

// Forward nodes from last to first: a clone reads operands, which makes those candidates with one more backward reader.
class Recomputer {
 public:
  // `longest`: cheap nodes in a row that are computed again from what the first of them reads.
  Recomputer(Graph& graph, int longest)
      : graph_(graph), longest_(longest), roots_(view_roots(graph)), kept_(root_values(graph)), reads_(graph.values.size()) {
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) note_reads(id);
  }

  bool run() {
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()) - 1; id >= 0; --id)
      if (is_worth_it(id)) recompute(id);
    if (groups_.empty()) return false;
    insert_groups();
    return true;
  }

 private:
  // What the backward reads of a value, itself or through views.
  struct Reads {
    NodeId first = kNone, last = kNone;  // last: steps alone, views end with their readers
    std::vector<NodeId> nodes;
  };

  struct Group {
    NodeId at = kNone;
    std::vector<Node> nodes;
  };

  static bool is_backward(const Node& node) { return node.program == Program::micro_step && node.backward; }

  void note_reads(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (!is_backward(node)) return;
    for (ValueId input : node.inputs) {
      if (input == kNone) continue;
      Reads& reads = reads_[roots_[input]];
      if (reads.first == kNone) reads.first = id;
      if (!is_view(node)) reads.last = id;
      reads.nodes.push_back(id);
    }
  }

  int64_t bytes_of(ValueId id) const { return elements(graph_.values[id].shape) * dtype_bytes(graph_.values[id].dtype); }

  bool is_worth_it(NodeId id) const {
    const Node& node = graph_.nodes[id];
    if (node.program != Program::micro_step || node.backward || !is_cheap(node.op)) return false;
    const ValueId result = node.outputs[0];
    const Reads& reads = reads_[result];
    if (reads.last == kNone || bytes_of(result) < kSmallest || kept_.count(result)) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return input == kNone || is_there(input, reads.first, bytes_of(result)); });
  }

  // The operand is in memory at the backward's node `at`, whether or not it is read there, or will be computed again from what is.
  bool is_there(ValueId input, NodeId at, int64_t bytes, int steps = 1) const {
    const ValueId id = roots_[input];
    const Value& root = graph_.values[id];
    if (root.kind == ValueKind::parameter) return bytes_of(id) <= bytes / 8;  // its unit is gathered nearby
    if (root.kind != ValueKind::computed || reads_[id].last >= at) return true;
    if (steps == longest_ || root.producer == kNone || bytes_of(id) < kSmallest || bytes_of(id) > bytes || kept_.count(id)) return false;
    const Node& node = graph_.nodes[root.producer];
    return node.program == Program::micro_step && !node.backward && is_cheap(node.op) && node.outputs[0] == id &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId operand) { return operand == kNone || is_there(operand, at, bytes_of(id), steps + 1); });
  }

  void recompute(NodeId id) {
    Group group;
    std::map<ValueId, ValueId> clone_of;
    group.at = graph_.nodes.size();
    std::vector<NodeId> readers;
    for (ValueId output : graph_.nodes[id].outputs) {
      const Reads& reads = reads_[output];
      if (reads.first != kNone) group.at = std::min(group.at, reads.first);
      readers.insert(readers.end(), reads.nodes.begin(), reads.nodes.end());
    }
    clone(id, group, clone_of);
    redirect_groups(id, group, clone_of);
    for (NodeId reader : readers) redirect(graph_.nodes[reader], id, group, clone_of);
    for (ValueId input : graph_.nodes[id].inputs) note_clone(input, group.at);
    groups_.push_back(std::move(group));
  }

  void clone(NodeId id, Group& group, std::map<ValueId, ValueId>& clone_of) {
    Node node = graph_.nodes[id];
    node.backward = true;
    node.reason = "computed again from what is kept anyway";
    for (ValueId& input : node.inputs)
      if (const auto known = clone_of.find(input); known != clone_of.end()) input = known->second;
    for (ValueId& output : node.outputs) {
      Value value = graph_.values[output];
      value.name += ".again";
      const ValueId copy = graph_.add_value(std::move(value));
      clone_of[output] = copy;
      output = copy;
    }
    group.nodes.push_back(std::move(node));
  }

  // Operands of `node` that show an output of `id` become what the clone computes; views of the forward are cloned on the way.
  void redirect(Node& node, NodeId id, Group& group, std::map<ValueId, ValueId>& clone_of) {
    for (ValueId& input : node.inputs) {
      if (input == kNone || input >= static_cast<ValueId>(roots_.size())) continue;  // none, or a clone
      const NodeId root = graph_.values[roots_[input]].producer;
      if (root != id || (graph_.values[input].producer != id && graph_.nodes[graph_.values[input].producer].backward)) continue;
      input = shown(input, group, clone_of);
    }
  }

  ValueId shown(ValueId value, Group& group, std::map<ValueId, ValueId>& clone_of) {
    if (const auto known = clone_of.find(value); known != clone_of.end()) return known->second;
    const NodeId view = graph_.values[value].producer;
    shown(graph_.nodes[view].inputs[0], group, clone_of);
    clone(view, group, clone_of);
    return clone_of.at(value);
  }

  // Clones of later nodes that read this one's outputs.
  void redirect_groups(NodeId id, Group& group, std::map<ValueId, ValueId>& clone_of) {
    for (Group& later : groups_)
      for (Node& node : later.nodes) redirect(node, id, group, clone_of);
  }

  void insert_groups() {
    GraphEdits edits(graph_);
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group)  // a clone stands behind those that it reads
      for (Node& node : group->nodes) edits.before(group->at, std::move(node));
    edits.apply();
  }

  void note_clone(ValueId input, NodeId at) {
    if (input == kNone || input >= static_cast<ValueId>(roots_.size())) return;
    Reads& reads = reads_[roots_[input]];
    reads.first = reads.first == kNone ? at : std::min(reads.first, at);
    reads.last = std::max(reads.last, at);
  }

  Graph& graph_;
  const int longest_;
  std::vector<ValueId> roots_;
  std::set<ValueId> kept_;
  std::vector<Reads> reads_;  // by root value
  std::vector<Group> groups_;
};

}  // namespace

// In a row, less is kept from the forward, but the backward holds more at once: whichever peak is lower.
bool recompute_cheap(Graph& graph, const CompileOptions&) {
  Graph in_a_row = graph;
  if (!Recomputer(in_a_row, kLongest).run()) return false;
  const bool changed = Recomputer(graph, 1).run();
  if (peak_live_bytes(graph) < peak_live_bytes(in_a_row)) return changed;
  graph = std::move(in_a_row);
  return true;
}

}  // namespace zeroplan
