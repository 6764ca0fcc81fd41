#include "passes/zero/node_edits.h"

#include <algorithm>

namespace zeroplan {

NodeEdits::NodeEdits(Graph& graph)
    : graph_(graph), before_(graph.nodes.size() + 1), after_(graph.nodes.size()), erased_(graph.nodes.size(), false) {}

void NodeEdits::before(NodeId at, Node node) {
  before_.at(at).push_back(std::move(node));
  changed_ = true;
}

void NodeEdits::after(NodeId at, Node node) {
  after_.at(at).push_back(std::move(node));
  changed_ = true;
}

void NodeEdits::append(Node node) {
  before_.back().push_back(std::move(node));
  changed_ = true;
}

void NodeEdits::erase(NodeId at) {
  erased_.at(at) = true;
  changed_ = true;
}

bool NodeEdits::apply() {
  if (!changed_) return false;
  std::vector<Node> nodes;
  const auto take = [&](std::vector<Node>& from) {
    for (Node& node : from) nodes.push_back(std::move(node));
  };
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    take(before_[i]);
    if (!erased_[i]) nodes.push_back(std::move(graph_.nodes[i]));
    take(after_[i]);
  }
  take(before_.back());
  std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) { return a.program < b.program; });
  graph_.nodes = std::move(nodes);
  graph_.reindex();
  return true;
}

Node make_node(OpKind op, Program program, std::vector<ValueId> inputs, int32_t unit) {
  Node node;
  node.op = op;
  node.program = program;
  node.inputs = std::move(inputs);
  node.unit = unit;
  return node;
}

}  // namespace zeroplan
