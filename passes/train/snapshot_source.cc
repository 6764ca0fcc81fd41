#include "passes/passes.h"

namespace zeroplan {

bool snapshot_source(Graph& graph, const CompileOptions&) {
  graph.source.clear();
  for (const Node& node : graph.nodes)
    if (node.program == Program::micro_step || node.program == Program::eval_step)
      graph.source.push_back({node.op, node.inputs, node.outputs, node.attributes, node.program});
  return !graph.source.empty();
}

}  // namespace zeroplan
