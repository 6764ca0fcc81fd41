#include "passes/lower/layouts.h"

#include "graph/ops/op_def.h"

namespace zeroplan {

bool is_view(const Node& node) { return op_class(node.op) == OpClass::view && node.op != OpKind::unit_view; }

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

std::vector<Layout> value_layouts(const Graph& graph) {
  std::vector<Layout> layouts(graph.values.size());
  for (ValueId id = 0; id < static_cast<ValueId>(layouts.size()); ++id) layouts[id] = {id, contiguous_strides(graph.values[id].shape)};
  for (const Node& node : graph.nodes)
    if (is_view(node))
      for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) layouts[node.outputs[i]] = view_layout(graph, node, i, layouts[node.inputs[0]]);
  return layouts;
}

}  // namespace zeroplan
