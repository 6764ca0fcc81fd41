#include "passes/edit/graph_edits.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

class ProductFuser {
 public:
  explicit ProductFuser(Graph& graph)
      : graph_(graph), edits_(graph), users_(graph.users()), roots_(root_values(graph)), taken_(graph.nodes.size(), false) {}

  bool run() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (graph_.nodes[id].op == OpKind::matmul && graph_.nodes[id].inputs.size() == 2) fuse(id);
    return edits_.apply();
  }

 private:
  // Where a value goes on in one addition alone: that node, and what is added.
  struct Addition {
    NodeId node = kNone;
    ValueId other = kNone;
  };

  Addition addition_of(ValueId sum) const {
    if (users_[sum].size() != 1 || roots_.count(sum)) return {};
    const Node &from = graph_.nodes[graph_.values[sum].producer], &node = graph_.nodes[users_[sum][0]];
    if (taken_[users_[sum][0]] || node.op != OpKind::add || node.program != from.program || node.backward != from.backward) return {};
    const ValueId other = node.inputs[0] == sum ? node.inputs[1] : node.inputs[0];
    const Value &x = graph_.values[sum], &y = graph_.values[node.outputs[0]];
    if (other == sum || y.shape != x.shape || graph_.values[other].dtype != x.dtype) return {};
    return {users_[sum][0], other};
  }

  void fuse(NodeId id) {
    const Node& product = graph_.nodes[id];
    const Shape& shape = graph_.values[product.outputs[0]].shape;
    if (shape.empty() || graph_.values[product.inputs[1]].shape.size() < 2) return;
    ValueId sum = product.outputs[0], bias = kNone, added = kNone;
    std::vector<NodeId> nodes = {id};
    const auto take = [&](const Addition& next, ValueId& operand) {
      operand = next.other;
      nodes.push_back(next.node);
      sum = graph_.nodes[next.node].outputs[0];
    };
    if (const Addition next = addition_of(sum); next.node != kNone && graph_.values[next.other].shape == Shape{shape.back()})
      take(next, bias);
    if (const Addition next = addition_of(sum); next.node != kNone && graph_.values[next.other].shape == shape) take(next, added);
    if (nodes.size() == 1) return;
    std::vector<ValueId> inputs = {product.inputs[0], product.inputs[1], bias};
    if (added != kNone) inputs.push_back(added);
    if (!edits_.become(nodes.back(), OpKind::matmul, std::move(inputs), product.attributes)) return;
    taken_[nodes.back()] = true;
    nodes.pop_back();
    for (const NodeId node : nodes) edits_.erase(node);
  }

  Graph& graph_;
  GraphEdits edits_;
  std::vector<std::vector<NodeId>> users_;
  std::set<ValueId> roots_;
  std::vector<bool> taken_;  // additions that have become products
};

}  // namespace

// A library of products adds a bias and another matrix without passing over the result again; the CPU's do not.
bool fuse_products(Graph& graph, const CompileOptions& options) { return options.device == DeviceKind::cuda && ProductFuser(graph).run(); }

}  // namespace zeroplan
