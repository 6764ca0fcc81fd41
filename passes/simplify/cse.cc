#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

// Equal keys: equal nodes. Doubles are written by their bits.
std::string node_key(const Node& node) {
  std::string key = fmt::format("{}/{}/{}", static_cast<int>(node.op), static_cast<int>(node.program), node.backward);
  for (ValueId input : node.inputs) key += fmt::format(",{}", input);
  for (const auto& [attribute, value] : node.attributes.entries()) {
    key += fmt::format(";{}:{}=", static_cast<int>(attribute), value.index());
    if (const auto* number = std::get_if<int64_t>(&value)) key += std::to_string(*number);
    if (const auto* real = std::get_if<double>(&value)) key += fmt::format("{:a}", *real);
    if (const auto* text = std::get_if<std::string>(&value)) key += *text;
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) key += fmt::format("{}", fmt::join(*list, " "));
  }
  return key;
}

bool has_state(const Graph& graph, const Node& node) {
  for (ValueId input : node.inputs)
    if (input != kNone && graph.values[input].kind == ValueKind::state) return true;
  return false;
}

std::map<ValueId, ValueId> equal_constants(const Graph& graph) {
  std::map<ValueId, ValueId> same;
  std::unordered_multimap<size_t, ValueId> seen;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.values[id];
    if (value.kind != ValueKind::constant) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(value.constant.data()), static_cast<size_t>(value.constant.bytes()));
    const size_t hash = std::hash<std::string_view>()(bytes);
    const auto [first, last] = seen.equal_range(hash);
    auto match = first;
    while (match != last && !(graph.values[match->second].constant == value.constant)) ++match;
    if (match != last)
      same[id] = match->second;
    else
      seen.emplace(hash, id);
  }
  return same;
}

}  // namespace

bool cse(Graph& graph, const CompileOptions&) {
  const bool changed = replace_reads(graph, equal_constants(graph));
  GraphEdits edits(graph);
  std::map<ValueId, ValueId> same;
  std::unordered_map<std::string, NodeId> seen;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    Node& node = graph.nodes[id];
    for (ValueId& input : node.inputs)
      if (const auto found = same.find(input); found != same.end()) input = found->second;
    const OpClass kind = op_class(node.op);
    if (kind == OpClass::comm || kind == OpClass::host || has_state(graph, node)) continue;
    const auto [place, fresh] = seen.emplace(node_key(node), id);
    if (fresh) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      same[node.outputs[i]] = graph.nodes[place->second].outputs[i];
      edits.forward(node.outputs[i], same[node.outputs[i]]);
    }
    edits.erase(id);
  }
  return edits.apply() || changed;
}

}  // namespace zeroplan
