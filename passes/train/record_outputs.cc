#include "graph/ops/builder.h"
#include "passes/edit/graph_edits.h"
#include "passes/passes.h"

namespace zeroplan {

bool record_outputs(Graph& graph, const CompileOptions& options) {
  if (!options.forward_only()) return false;
  for (Node& node : graph.nodes) node.program = Program::eval_step;
  Builder build(graph);
  build.program = Program::eval_step;
  for (const auto& [name, id] : graph.outputs) {
    const Value output = graph.values[id];
    const ValueId state =
        graph.add_value({.name = "output." + name, .dtype = output.dtype, .shape = output.shape, .kind = ValueKind::state});
    build.origin = name;
    const ValueId recorded = build.add(OpKind::record_output, {id, state}, {}, "output." + name + ".recorded");
    graph.state_updates.push_back({Program::eval_step, state, recorded});
  }
  graph.outputs.clear();
  return true;
}

}  // namespace zeroplan
