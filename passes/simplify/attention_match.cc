#include "passes/simplify/attention_match.h"

#include <algorithm>
#include <numeric>

#include "passes/edit/producers.h"
#include "passes/simplify/attention_mask.h"

namespace zeroplan {
namespace {

std::vector<int64_t> identity(size_t rank) {
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  return permutation;
}

}  // namespace

AttentionMatcher::AttentionMatcher(const Graph& graph) : graph_(graph), trained_(graph.values.size(), false) {
  for (size_t i = 0; i < trained_.size(); ++i) trained_[i] = graph.values[i].kind == ValueKind::parameter;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for (ValueId input : node.inputs) any = any || (input != kNone && trained_[input]);
    for (ValueId output : node.outputs) trained_[output] = any && is_floating(graph.values[output].dtype);
  }
}

std::optional<AttentionMatch> AttentionMatcher::match(NodeId id) const {
  const Node& node = graph_.nodes[id];
  const size_t rank = graph_.values[node.outputs[0]].shape.size();
  if (node.op != OpKind::matmul || (rank != 3 && rank != 4)) return std::nullopt;
  for (ValueId input : node.inputs)
    if (graph_.values[input].shape.size() != rank) return std::nullopt;
  AttentionMatch match;
  bool guarded = false;
  const ValueId probabilities = without_nan_guard(node.inputs[0], guarded);
  const Node* softmax = producer_of(graph_, probabilities, OpKind::softmax);
  if (!softmax || graph_.values[probabilities].shape.size() != rank) return std::nullopt;
  match.probabilities = graph_.values[probabilities].producer;
  match.v = node.inputs[1];
  if (!take_scores(softmax->inputs[0], match)) return std::nullopt;
  // The guard turns fully masked rows into zeros; only where there are none is it without effect.
  if (guarded && match.mask != kNone) {
    const Value& mask = graph_.values[match.mask];
    if (mask.kind != ValueKind::constant || !keeps_some_in_each_row(mask.constant)) return std::nullopt;
  }
  return match;
}

// p of where(is_nan(p), 0, p).
ValueId AttentionMatcher::without_nan_guard(ValueId id, bool& guarded) const {
  const Node* node = producer_of(graph_, id, OpKind::where);
  const Node* test = node ? producer_of(graph_, node->inputs[0], OpKind::is_nan) : nullptr;
  if (!test || test->inputs[0] != node->inputs[2] || scalar_constant(graph_, node->inputs[1]) != 0.0) return id;
  guarded = true;
  return node->inputs[2];
}

// From the softmax backwards: masks, then scales, then the product of q and kᵀ.
bool AttentionMatcher::take_scores(ValueId scores, AttentionMatch& match) const {
  const Shape shape = graph_.values[scores].shape;
  for (const Node* node = producer_of(graph_, scores); node; node = producer_of(graph_, scores)) {
    if (node->op == OpKind::matmul) break;
    if (match.scale == 1 && take_mask(*node, scores, match)) continue;
    if (!take_scale(scores, match.scale)) return false;
  }
  const Node* product = producer_of(graph_, scores, OpKind::matmul);
  if (!product || graph_.values[scores].shape != shape) return false;
  for (ValueId input : product->inputs)
    if (graph_.values[input].shape.size() != shape.size()) return false;
  match.q = without_scale(product->inputs[0], match.scale);
  match.k = without_scale(product->inputs[1], match.scale);
  std::swap(match.k.permutation[shape.size() - 1], match.k.permutation[shape.size() - 2]);
  return true;
}

// node = scores + mask, or a choice between scores and a large negative number.
bool AttentionMatcher::take_mask(const Node& node, ValueId& scores, AttentionMatch& match) const {
  if (node.op == OpKind::where) return take_where(node, scores, match);
  if (node.op != OpKind::add) return false;
  const Shape& shape = graph_.values[node.outputs[0]].shape;
  for (int i : {1, 0}) {
    const ValueId mask = node.inputs[i], rest = node.inputs[1 - i];
    if (trained_[mask] || graph_.values[rest].shape != shape || graph_.values[mask].kind == ValueKind::state) continue;
    if (!add_mask(mask, match, shape[shape.size() - 2], shape.back())) continue;
    scores = rest;
    return true;
  }
  return false;
}

bool AttentionMatcher::take_where(const Node& node, ValueId& scores, AttentionMatch& match) const {
  const Shape& shape = graph_.values[node.outputs[0]].shape;
  const Value& condition = graph_.values[node.inputs[0]];
  for (const bool kept_where : {true, false}) {
    const std::optional<double> other = scalar_constant(graph_, node.inputs[kept_where ? 2 : 1]);
    const ValueId rest = node.inputs[kept_where ? 1 : 2];
    if (!other || *other > kMasked || condition.kind != ValueKind::constant || graph_.values[rest].shape != shape) continue;
    const MaskKind kind = classify_keep_mask(condition.constant, kept_where, shape[shape.size() - 2], shape.back());
    if (kind == MaskKind::general) return false;
    match.causal = match.causal || kind == MaskKind::causal;
    scores = rest;
    return true;
  }
  return false;
}

bool AttentionMatcher::add_mask(ValueId mask, AttentionMatch& match, int64_t rows, int64_t columns) const {
  const Value& value = graph_.values[mask];
  MaskKind kind = MaskKind::general;
  if (value.kind == ValueKind::constant) kind = classify_additive_mask(value.constant, rows, columns);
  if (kind == MaskKind::general) {
    if (match.mask != kNone) return false;
    match.mask = mask;
  }
  match.causal = match.causal || kind == MaskKind::causal;
  return true;
}

bool AttentionMatcher::take_scale(ValueId& id, double& scale) const {
  for (OpKind op : {OpKind::mul, OpKind::div}) {
    const std::optional<ScalarOperand> scaled = with_scalar(graph_, id, op);
    if (!scaled || (op == OpKind::div && scaled->c == 0)) continue;
    scale = op == OpKind::mul ? scale * scaled->c : scale / scaled->c;
    id = scaled->x;
    return true;
  }
  return false;
}

// Scales and transposes in any order; both are taken off.
PermutedValue AttentionMatcher::without_scale(ValueId id, double& scale) const {
  PermutedValue result{id, identity(graph_.values[id].shape.size())};
  while (true) {
    if (take_scale(result.base, scale)) continue;
    const Node* node = producer_of(graph_, result.base, OpKind::transpose);
    if (!node) return result;
    const std::vector<int64_t>& inner = node->attributes.get_ints(Attr::permutation);
    for (int64_t& axis : result.permutation) axis = inner[axis];
    result.base = node->inputs[0];
  }
}

}  // namespace zeroplan
