#include "passes/edit/producers.h"

namespace zeroplan {

const Node* producer_of(const Graph& graph, ValueId id) {
  if (id == kNone || graph.values[id].producer == kNone) return nullptr;
  return &graph.nodes[graph.values[id].producer];
}

const Node* producer_of(const Graph& graph, ValueId id, OpKind op) {
  const Node* node = producer_of(graph, id);
  return node && node->op == op ? node : nullptr;
}

std::optional<double> scalar_constant(const Graph& graph, ValueId id) {
  if (id == kNone) return std::nullopt;
  const Value& value = graph.values[id];
  if (value.kind != ValueKind::constant || !is_floating(value.dtype) || value.constant.count() != 1) return std::nullopt;
  return value.constant.get(0);
}

std::optional<ScalarOperand> with_scalar(const Graph& graph, ValueId id, OpKind op) {
  const Node* node = producer_of(graph, id, op);
  if (!node) return std::nullopt;
  const bool commutative = op == OpKind::add || op == OpKind::mul;
  for (int i = 1; i >= (commutative ? 0 : 1); --i) {
    const std::optional<double> c = scalar_constant(graph, node->inputs[i]);
    const ValueId x = node->inputs[1 - i];
    if (c && graph.values[x].shape == graph.values[id].shape) return ScalarOperand{x, *c};
  }
  return std::nullopt;
}

}  // namespace zeroplan
