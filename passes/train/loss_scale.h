#pragma once
#include "graph/ir/graph.h"

namespace zeroplan {

// Where the loss scale starts: a power of two such that a mean starts at kLossScaleStart, as backward begins at the sum of the losses.
double first_loss_scale(const Graph& graph);

}  // namespace zeroplan
