#include "passes/train/record_statistics.h"

#include <algorithm>

#include "graph/ops/builder.h"

namespace zeroplan {

void record_statistics(Graph& graph, int64_t micro_batches) {
  Builder build(graph);
  for (BatchStatistics& s : graph.statistics) {
    const Parameter& running = graph.parameters[graph.values[s.running_mean].parameter];
    const int64_t channels = graph.values[s.mean].shape[0];
    s.recorded = graph.add_value({.name = "statistics." + running.name,
                                  .dtype = DType::f64,
                                  .shape = {std::max<int64_t>(micro_batches, 1), 2 * channels},
                                  .kind = ValueKind::state});
    const NodeId producer = graph.values[s.mean].producer;
    build.origin = producer == kNone ? running.name : graph.nodes[producer].origin;
    const ValueId after =
        build.add(OpKind::record_statistics, {s.mean, s.variance, s.recorded}, {}, graph.values[s.recorded].name + ".recorded");
    graph.state_updates.push_back({Program::micro_step, s.recorded, after});
  }
}

}  // namespace zeroplan
