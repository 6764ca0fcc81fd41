#include "passes/train/record.h"

#include <algorithm>

#include "graph/ops/builder.h"
#include "runtime/plan/report.h"

namespace zeroplan {

void record_loss_of(Graph& graph, const Loss& loss, Program program, const std::string& name, int64_t micro_batches) {
  const ValueId metrics = graph.add_value(
      {.name = name, .dtype = DType::f64, .shape = {metrics_elements(std::max<int64_t>(micro_batches, 1))}, .kind = ValueKind::state});
  Builder build(graph);
  build.program = program;
  build.origin = "loss";
  const ValueId after = build.add(OpKind::record_loss, {loss.sum, loss.weight, metrics}, {}, name + ".recorded");
  graph.state_updates.push_back({program, metrics, after});
}

}  // namespace zeroplan
