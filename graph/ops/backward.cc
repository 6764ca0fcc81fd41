#include "graph/ops/backward.h"

#include "graph/ops/op_def.h"

namespace zeroplan {

Backward::Backward(Graph& graph, Builder& build, std::vector<bool> leaves, ValueId target)
    : graph_(graph),
      build_(build),
      sum_(graph, build),
      nodes_(static_cast<NodeId>(graph.nodes.size())),
      leaves_(std::move(leaves)),
      target_(target) {
  find_needed();
  find_on_path();
}

// A value needs a gradient where a leaf reaches it through floating-point values.
void Backward::find_needed() {
  needed_ = leaves_;
  first_read_.assign(nodes_, {});
  std::vector<bool> read(needed_.size(), false);
  for (NodeId id = 0; id < nodes_; ++id) {
    const Node& node = graph_.nodes[id];
    if (node.program != Program::micro_step) continue;
    bool any = false;
    for (ValueId input : node.inputs) {
      if (input == kNone || !needed_[input]) continue;
      any = true;
      if (leaves_[input] && !read[input]) first_read_[id].push_back(input);
      read[input] = true;
    }
    for (ValueId output : node.outputs) needed_[output] = leaves_[output] || (any && is_floating(graph_.values[output].dtype));
  }
}

// Nodes between a needed operand and the target.
void Backward::find_on_path() {
  on_path_.assign(nodes_, false);
  std::vector<bool> reaches(needed_.size(), false);
  reaches[target_] = true;
  for (NodeId id = nodes_ - 1; id >= 0; --id) {
    const Node& node = graph_.nodes[id];
    bool active = false;
    for (ValueId output : node.outputs) active = active || (reaches[output] && needed_[output] && !leaves_[output]);
    if (!active || node.program != Program::micro_step) continue;
    on_path_[id] = true;
    for (ValueId input : node.inputs)
      if (input != kNone) reaches[input] = true;
  }
}

std::vector<const Node*> Backward::without_gradient() const {
  std::vector<const Node*> nodes;
  for (NodeId id = 0; id < nodes_; ++id)
    if (on_path_[id] && !op_def(graph_.nodes[id].op).vjp) nodes.push_back(&graph_.nodes[id]);
  return nodes;
}

void Backward::run(ValueId seed, const std::function<void(ValueId leaf, ValueId gradient)>& done) {
  sum_.contribute(target_, seed);
  for (NodeId id = nodes_ - 1; id >= 0; --id) {
    if (on_path_[id]) differentiate(id);
    for (ValueId leaf : first_read_[id])  // all reads of it lie behind
      if (const ValueId total = sum_.total(leaf); total != kNone) done(leaf, total);
  }
}

void Backward::differentiate(NodeId id) {
  const Node node = graph_.nodes[id];  // a copy: building nodes moves the originals
  build_.origin = node.origin;
  std::vector<ValueId> gradients;
  bool any = false;
  for (ValueId output : node.outputs) {
    gradients.push_back(sum_.total(output));
    any = any || gradients.back() != kNone;
  }
  if (!any) return;
  std::vector<bool> needs;
  for (ValueId input : node.inputs) needs.push_back(input != kNone && needed_[input]);
  VjpContext context(build_, node, std::move(gradients), needs);
  op_def(node.op).vjp(context);
  for (size_t i = 0; i < needs.size(); ++i)
    if (needs[i] && context.gradients()[i] != kNone) sum_.contribute(node.inputs[i], context.gradients()[i]);
}

}  // namespace zeroplan
