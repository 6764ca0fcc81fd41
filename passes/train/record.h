#pragma once
#include <string>

#include "graph/ir/graph.h"

namespace zeroplan {

// Appends record_loss to `program`: sum and weight of the loss go into state `name`, f64 of the layout in runtime/plan/report.h.
void record_loss_of(Graph& graph, const Loss& loss, Program program, const std::string& name, int64_t micro_batches);

}  // namespace zeroplan
