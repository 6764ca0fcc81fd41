#include "passes/simplify/rewrite.h"

#include <algorithm>

#include "base/error.h"
#include "graph/ops/op_def.h"

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

std::set<ValueId> root_values(const Graph& graph) {
  std::set<ValueId> roots;
  for (const Loss* loss : {&graph.loss, &graph.eval_loss}) roots.insert({loss->sum, loss->weight});
  for (const auto& [name, id] : graph.outputs) roots.insert(id);
  for (const auto& [parameter, id] : graph.gradients) roots.insert(id);
  for (const StateUpdate& update : graph.state_updates) roots.insert({update.from, update.to});
  roots.erase(kNone);
  return roots;
}

bool replace_reads(Graph& graph, const std::map<ValueId, ValueId>& replacement) {
  bool changed = false;
  const auto redirect = [&](ValueId& id) {
    for (auto found = replacement.find(id); found != replacement.end(); found = replacement.find(id)) {
      id = found->second;
      changed = true;
    }
  };
  for (Node& node : graph.nodes)
    for (ValueId& input : node.inputs) redirect(input);
  for (Loss* loss : {&graph.loss, &graph.eval_loss}) {
    redirect(loss->sum);
    redirect(loss->weight);
  }
  for (auto& [name, id] : graph.outputs) redirect(id);
  for (auto& [parameter, id] : graph.gradients) redirect(id);
  for (StateUpdate& update : graph.state_updates) redirect(update.to);
  return changed;
}

bool drop_dead_nodes(Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (ValueId id : root_values(graph)) live[id] = true;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const OpClass kind = op_class(node.op);
    keep[i] = kind == OpClass::comm || kind == OpClass::host;
    for (ValueId output : node.outputs) keep[i] = keep[i] || live[output];
    if (!keep[i]) continue;
    for (ValueId input : node.inputs)
      if (input != kNone) live[input] = true;
  }
  const size_t before = graph.nodes.size();
  size_t next = 0;
  for (size_t i = 0; i < before; ++i) {
    if (!keep[i]) continue;
    if (next != i) graph.nodes[next] = std::move(graph.nodes[i]);
    ++next;
  }
  graph.nodes.resize(next);
  graph.reindex();
  return next != before;
}

void sort_programs(Graph& graph) {
  std::stable_sort(graph.nodes.begin(), graph.nodes.end(), [](const Node& a, const Node& b) { return a.program < b.program; });
  graph.reindex();
}

Builder Rewriter::before(NodeId at) {
  at_ = at;
  first_ = graph_.nodes.size();
  Builder build(graph_);
  build.origin = graph_.nodes[at].origin;
  build.backward = graph_.nodes[at].backward;
  build.program = graph_.nodes[at].program;
  return build;
}

void Rewriter::place() {
  for (size_t i = first_; i < graph_.nodes.size(); ++i) {
    for (ValueId output : graph_.nodes[i].outputs) graph_.values[output].producer = kNone;
    inserted_[at_].push_back(std::move(graph_.nodes[i]));
    changed_ = true;
  }
  graph_.nodes.resize(first_);
}

bool Rewriter::become(NodeId at, OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
  Node node = graph_.nodes[at];
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.outputs.resize(1);
  std::vector<OutputType> types;
  try {
    types = infer_node(graph_, node);
  } catch (const Error&) {
    return false;
  }
  const Value& old = graph_.values[node.outputs[0]];
  if (types[0].dtype != old.dtype || types[0].shape != old.shape) return false;
  const std::string stem = old.name;
  for (size_t i = 1; i < types.size(); ++i)
    node.outputs.push_back(graph_.add_value({.name = stem + "." + std::to_string(i), .dtype = types[i].dtype, .shape = types[i].shape}));
  graph_.nodes[at] = std::move(node);
  changed_ = true;
  return true;
}

bool Rewriter::finish() {
  std::vector<Node> nodes;
  nodes.reserve(graph_.nodes.size());
  for (NodeId i = 0; i < static_cast<NodeId>(graph_.nodes.size()); ++i) {
    if (const auto found = inserted_.find(i); found != inserted_.end())
      for (Node& node : found->second) nodes.push_back(std::move(node));
    nodes.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(nodes);
  inserted_.clear();
  graph_.reindex();
  changed_ = replace_reads(graph_, replacement_) || changed_;
  replacement_.clear();
  return changed_;
}

}  // namespace zeroplan
