#include "passes/edit/live_bytes.h"

#include <algorithm>
#include <vector>

#include "passes/edit/reads.h"
#include "passes/edit/views.h"

namespace zeroplan {

int64_t peak_live_bytes(const Graph& graph) {
  const std::vector<ValueId> roots = view_roots(graph);
  std::vector<NodeId> last(graph.values.size(), kNone);  // by root
  NodeId end = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    if (graph.nodes[id].program == Program::micro_step) end = id;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    for (const std::vector<ValueId>* ids : {&node.inputs, &node.outputs})
      for (const ValueId value : *ids)
        if (value != kNone) last[roots[value]] = std::max(last[roots[value]], node.program == Program::micro_step ? id : end);
  }
  for (const ValueId value : root_values(graph)) last[roots[value]] = end;
  std::vector<int64_t> change(static_cast<size_t>(end) + 2, 0);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.values[id];
    if (roots[id] != id || value.kind != ValueKind::computed || value.producer == kNone) continue;
    if (graph.nodes[value.producer].program != Program::micro_step) continue;
    const int64_t bytes = elements(value.shape) * dtype_bytes(value.dtype);
    change[value.producer] += bytes;
    change[last[id] + 1] -= bytes;
  }
  int64_t live = 0, peak = 0;
  for (const int64_t step : change) peak = std::max(peak, live += step);
  return peak;
}

}  // namespace zeroplan
