#include "passes/lower/in_place.h"

#include <algorithm>

#include "graph/ops/op_def.h"
#include "passes/lower/storage_groups.h"

namespace zeroplan {
namespace {

// Nodes whose outputs are the next content of state operands.
bool changes_state(const Graph& graph, const Node& node) {
  switch (node.op) {
    case OpKind::record_loss:
    case OpKind::record_statistics:
    case OpKind::fold_statistics:
    case OpKind::record_output:
    case OpKind::fold_metrics:
    case OpKind::grad_norm:
    case OpKind::clip_factor:
    case OpKind::optimizer_update:
    case OpKind::reduce_scatter:
    case OpKind::all_reduce: return true;
    case OpKind::gather_weights:
      return weight_copy(graph.units[node.unit], graph.values[node.inputs[0]].dtype).placement == Placement::replicated;
    default: return false;
  }
}

std::vector<std::pair<int32_t, int32_t>> state_pairs(const Node& node) {
  if (node.op == OpKind::reduce_scatter && node.inputs[0] == kNone) return {};
  if (node.op != OpKind::optimizer_update) {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (const auto& [output, input] : op_def(node.op).in_place)
      if (output < static_cast<int>(node.outputs.size())) pairs.emplace_back(output, input);
    return pairs;
  }
  std::vector<std::pair<int32_t, int32_t>> pairs = {{0, 0}};
  const int32_t moments = static_cast<int32_t>(node.inputs.size()) - 3;
  for (int32_t i = 0; i < moments; ++i) pairs.emplace_back(1 + i, 3 + i);
  pairs.emplace_back(1 + moments, 1);
  return pairs;
}

}  // namespace

void InPlace::find_last_reads() {
  last_read_.assign(graph_.values.size(), kNone);
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
    if (storage_.step_of[id] == kNone) continue;
    for (ValueId input : graph_.nodes[id].inputs)
      if (input != kNone) last_read_[storage_.layouts[input].root] = id;
  }
}

std::vector<std::pair<int32_t, int32_t>> InPlace::pairs(NodeId id) const {
  const Node& node = graph_.nodes[id];
  if (changes_state(graph_, node)) return state_pairs(node);
  std::vector<std::pair<int32_t, int32_t>> pairs;
  if (op_class(node.op) != OpClass::kernel) return pairs;
  for (const auto& [output, input] : op_def(node.op).in_place) {
    const auto taken = [&, output = output, input = input](const auto& pair) { return pair.first == output || pair.second == input; };
    if (std::none_of(pairs.begin(), pairs.end(), taken) && may_share(id, output, input)) pairs.emplace_back(output, input);
  }
  return pairs;
}

bool InPlace::may_share(NodeId id, int output, int input) const {
  const Node& node = graph_.nodes[id];
  if (output >= static_cast<int>(node.outputs.size()) || input >= static_cast<int>(node.inputs.size()) || node.inputs[input] == kNone)
    return false;
  const Value& from = graph_.values[node.inputs[input]];
  const Value& to = graph_.values[node.outputs[output]];
  const Layout& layout = storage_.layouts[node.inputs[input]];
  const Value& root = graph_.values[layout.root];
  if (from.shape != to.shape || from.dtype != to.dtype || root.kind != ValueKind::computed) return false;
  if (layout.offset != 0 || elements(root.shape) != elements(from.shape) || !is_contiguous(from.shape, layout.strides)) return false;
  if (last_read_[layout.root] != id || storage_.groups[storage_.places[layout.root].group].kind != TensorKind::activation) return false;
  const auto same_root = [&](ValueId other) { return other != kNone && storage_.layouts[other].root == layout.root; };
  if (std::count_if(node.inputs.begin(), node.inputs.end(), same_root) != 1) return false;
  // A place that is fixed already: only a reduce buffer takes the operand in.
  const int32_t fixed = storage_.places[node.outputs[output]].group;
  return fixed == kNone || storage_.groups[fixed].kind == TensorKind::reduce_buffer || storage_.groups[fixed].kind == TensorKind::gradients;
}

}  // namespace zeroplan
