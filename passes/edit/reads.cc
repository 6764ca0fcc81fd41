#include "passes/edit/reads.h"

#include "graph/ops/op_def.h"

namespace zeroplan {

std::set<ValueId> root_values(const Graph& graph) {
  std::set<ValueId> roots;
  for (const Loss* loss : {&graph.loss, &graph.eval_loss}) roots.insert({loss->sum, loss->weight});
  for (const auto& [name, id] : graph.outputs) roots.insert(id);
  for (const auto& [parameter, id] : graph.gradients) roots.insert(id);
  for (const StateUpdate& update : graph.state_updates) roots.insert({update.from, update.to});
  for (const BatchStatistics& s : graph.statistics) roots.insert({s.mean, s.variance, s.running_mean, s.running_variance, s.recorded});
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
  for (BatchStatistics& s : graph.statistics) {
    redirect(s.mean);
    redirect(s.variance);
  }
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

}  // namespace zeroplan
