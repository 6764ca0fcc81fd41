#include "passes/edit/graph_edits.h"

#include <algorithm>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "passes/edit/reads.h"

namespace zeroplan {

GraphEdits::GraphEdits(Graph& graph)
    : graph_(graph), before_(graph.nodes.size() + 1), after_(graph.nodes.size()), erased_(graph.nodes.size(), false) {}

void GraphEdits::before(NodeId at, Node node) {
  before_.at(at).push_back(std::move(node));
  changed_ = true;
}

void GraphEdits::after(NodeId at, Node node) {
  after_.at(at).push_back(std::move(node));
  changed_ = true;
}

void GraphEdits::append(Node node) {
  before_.back().push_back(std::move(node));
  changed_ = true;
}

void GraphEdits::erase(NodeId at) {
  erased_.at(at) = true;
  changed_ = true;
}

Builder GraphEdits::build_before(NodeId at) {
  at_ = at;
  Builder build(graph_);
  build.origin = graph_.nodes[at].origin;
  build.backward = graph_.nodes[at].backward;
  build.program = graph_.nodes[at].program;
  return build;
}

// The builder has appended them to the graph.
void GraphEdits::place() {
  for (size_t i = erased_.size(); i < graph_.nodes.size(); ++i) {
    for (ValueId output : graph_.nodes[i].outputs) graph_.values[output].producer = kNone;
    before(at_, std::move(graph_.nodes[i]));
  }
  discard();
}

void GraphEdits::discard() { graph_.nodes.resize(erased_.size()); }

bool GraphEdits::become(NodeId at, OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
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

bool GraphEdits::apply() {
  if (changed_) rebuild();
  return replace_reads(graph_, replacement_) || changed_;
}

void GraphEdits::rebuild() {
  std::vector<Node> nodes;
  nodes.reserve(graph_.nodes.size());
  const auto take = [&](std::vector<Node>& from) {
    for (Node& node : from) nodes.push_back(std::move(node));
  };
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    take(before_[i]);
    if (!erased_[i]) nodes.push_back(std::move(graph_.nodes[i]));
    take(after_[i]);
  }
  take(before_.back());
  graph_.nodes = std::move(nodes);
  sort_programs(graph_);
}

Node make_node(OpKind op, Program program, std::vector<ValueId> inputs, int32_t unit) {
  Node node;
  node.op = op;
  node.program = program;
  node.inputs = std::move(inputs);
  node.unit = unit;
  return node;
}

void sort_programs(Graph& graph) {
  std::stable_sort(graph.nodes.begin(), graph.nodes.end(), [](const Node& a, const Node& b) { return a.program < b.program; });
  graph.reindex();
}

}  // namespace zeroplan
