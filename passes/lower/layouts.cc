#include "passes/lower/layouts.h"

#include <algorithm>

#include "graph/ops/op_def.h"
#include "graph/ops/output_layout.h"
#include "passes/edit/views.h"

namespace zeroplan {
namespace {

bool takes(const Graph& graph, const Node& node, ValueId value, const Strides& strides) {
  const OpDef& def = op_def(node.op);
  if (op_class(node.op) != OpClass::kernel || !def.accepts) return false;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
    if (node.inputs[i] == value && !def.accepts(graph, node, i, graph.values[value].shape, strides)) return false;
  return true;
}

// Strides of the value that make its transpose contiguous.
Strides transposed_strides(const Shape& shape, const std::vector<int64_t>& permutation) {
  Shape seen;
  for (int64_t axis : permutation) seen.push_back(shape[axis]);
  const Strides contiguous = contiguous_strides(seen);
  Strides strides(shape.size());
  for (size_t i = 0; i < permutation.size(); ++i) strides[permutation[i]] = contiguous[i];
  return strides;
}

class RootStrides {
 public:
  explicit RootStrides(const Graph& graph) : graph_(graph), users_(graph.users()) {}

  // Contiguous, unless every view of the value is one same transpose and the kernels around do not mind.
  Strides of(ValueId id) const {
    const Value& value = graph_.values[id];
    const Strides plain = contiguous_strides(value.shape);
    if (value.kind != ValueKind::computed || value.producer == kNone || value.unit != kNone) return plain;
    const Node& producer = graph_.nodes[value.producer];
    const auto output = std::find(producer.outputs.begin(), producer.outputs.end(), id) - producer.outputs.begin();
    const Node* transpose = nullptr;
    for (NodeId user : users_[id])
      if (graph_.nodes[user].op == OpKind::transpose) transpose = &graph_.nodes[user];
    if (!transpose) return plain;
    const std::vector<int64_t> permutation = transpose->attributes.get_ints(Attr::permutation);
    const Strides wanted = transposed_strides(value.shape, permutation);
    if (!writes_layout(producer.op, static_cast<int>(output), value.shape, wanted)) return plain;
    const auto agrees = [&](NodeId user) {
      const Node& node = graph_.nodes[user];
      if (node.op == OpKind::transpose) return node.attributes.get_ints(Attr::permutation) == permutation;
      return takes(graph_, node, id, wanted);
    };
    return std::all_of(users_[id].begin(), users_[id].end(), agrees) ? wanted : plain;
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

Layout view_layout(const Graph& graph, const Node& node, int output, const Layout& input) {
  Layout layout;
  layout.root = input.root;
  bool possible = true;
  int64_t offset = 0;
  op_def(node.op).view(node, output, graph.values[node.inputs[0]].shape, input.strides, layout.strides, offset, possible);
  layout.offset = input.offset + offset;
  layout.possible = input.possible && possible;
  return layout;
}

std::vector<Layout> root_layouts(const Graph& graph) {
  const RootStrides strides(graph);
  std::vector<Layout> layouts;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) layouts.push_back({id, strides.of(id)});
  return layouts;
}

std::vector<Layout> value_layouts(const Graph& graph) {
  std::vector<Layout> layouts = root_layouts(graph);
  for (const Node& node : graph.nodes)
    if (is_view(node))
      for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
        layouts[node.outputs[i]] = view_layout(graph, node, i, layouts[node.inputs[0]]);
  return layouts;
}

}  // namespace zeroplan
