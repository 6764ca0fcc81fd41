#pragma once
#include "graph/ir/graph.h"

namespace zeroplan {

// Appends to micro_step one record_statistics per batch normalization that works with the statistics of its batch.
void record_statistics(Graph& graph, int64_t micro_batches);

}  // namespace zeroplan
