#include "passes/edit/views.h"

#include <numeric>

#include "graph/ops/op_def.h"

namespace zeroplan {

bool is_view(const Node& node) { return op_class(node.op) == OpClass::view && node.op != OpKind::unit_view; }

std::vector<ValueId> view_roots(const Graph& graph) {
  std::vector<ValueId> roots(graph.values.size());
  std::iota(roots.begin(), roots.end(), 0);
  for (const Node& node : graph.nodes)
    if (is_view(node))
      for (ValueId output : node.outputs) roots[output] = roots[node.inputs[0]];
  return roots;
}

}  // namespace zeroplan
