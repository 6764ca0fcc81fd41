#include "passes/train/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "runtime/plan/report.h"

namespace zeroplan {
namespace {

constexpr int kLongestChain = 16;

// Of a full micro-batch, as far as its shapes tell.
double nominal_weight(const Graph& graph, ValueId id, int steps = kLongestChain) {
  const Value& value = graph.values[id];
  if (elements(value.shape) > 1 || steps == 0) return static_cast<double>(elements(value.shape));
  if (value.kind == ValueKind::constant) return value.constant.get(0);
  if (value.producer == kNone) return 1;
  const Node& node = graph.nodes[value.producer];
  if (node.op == OpKind::cross_entropy) return static_cast<double>(graph.values[node.inputs[0]].shape[0]);
  double most = 1;
  for (const ValueId input : node.inputs)
    if (input != kNone) most = std::max(most, nominal_weight(graph, input, steps - 1));
  return most;
}

}  // namespace

double first_loss_scale(const Graph& graph) {
  const double weight = graph.loss.weight == kNone ? 1 : nominal_weight(graph, graph.loss.weight);
  return kLossScaleStart / std::exp2(std::ceil(std::log2(std::max(1.0, weight))));
}

}  // namespace zeroplan
