#include "passes/train/loss_nodes.h"

#include <algorithm>

#include "graph/ops/op_def.h"
#include "passes/edit/views.h"
#include "passes/train/computed_in.h"

namespace zeroplan {
namespace {

bool is_layer(OpKind op) {
  switch (op) {
    case OpKind::layer_norm:
    case OpKind::rms_norm:
    case OpKind::batch_norm:
    case OpKind::max_pool:
    case OpKind::average_pool:
    case OpKind::dropout: return true;
    default: return computed_in(op) == ComputedIn::half;
  }
}

}  // namespace

std::vector<bool> loss_nodes(const Graph& graph) {
  const std::vector<ValueId> roots = view_roots(graph);
  std::vector<bool> read(graph.values.size(), false);       // by something of the loss
  std::vector<bool> read_else(graph.values.size(), false);  // by something that is not
  for (const Loss* loss : {&graph.loss, &graph.eval_loss})
    for (const ValueId id : {loss->sum, loss->weight})
      if (id != kNone) read[id] = true;
  for (const auto& [name, id] : graph.outputs) read_else[id] = true;
  std::vector<bool> of_loss(graph.nodes.size(), false);
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()) - 1; id >= 0; --id) {
    const Node& node = graph.nodes[id];
    const auto reads_parameter = [&](ValueId input) { return input != kNone && graph.values[roots[input]].kind == ValueKind::parameter; };
    const auto any = [&](const std::vector<bool>& flags) {
      return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) { return flags[output]; });
    };
    of_loss[id] = node.op == OpKind::record_loss || (any(read) && !any(read_else) && !is_layer(node.op) &&
                                                     std::none_of(node.inputs.begin(), node.inputs.end(), reads_parameter));
    for (const ValueId input : node.inputs)
      if (input != kNone) (of_loss[id] ? read : read_else)[input] = true;
  }
  return of_loss;
}

}  // namespace zeroplan
