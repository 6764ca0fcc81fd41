#pragma once
#include "graph/ir/graph.h"

namespace zeroplan {

// Throws std::logic_error naming the node unless: ids in range, one producer per value, operands defined before use within the
// program, shapes and types equal to what the op's infer gives.
void verify_graph(const Graph& graph);

}  // namespace zeroplan
