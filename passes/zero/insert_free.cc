#include <algorithm>

#include "passes/edit/graph_edits.h"
#include "passes/edit/views.h"
#include "passes/passes.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {

bool insert_free(Graph& graph, const CompileOptions&) {
  const std::vector<ValueId> roots = view_roots(graph);
  std::vector<NodeId> last_reader(graph.values.size(), kNone);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    for (ValueId input : graph.nodes[id].inputs)
      if (input != kNone) last_reader[roots[input]] = id;
  GraphEdits edits(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& gather = graph.nodes[id];
    if (gather.op != OpKind::gather_weights) continue;
    NodeId last = id;
    for (ValueId output : gather.outputs) last = std::max(last, last_reader[output]);
    Node free = make_node(OpKind::free_unit, gather.program, gather.outputs, gather.unit);
    free.backward = graph.nodes[last].backward;
    edits.after(last, std::move(free));
  }
  return edits.apply();
}

}  // namespace zeroplan
