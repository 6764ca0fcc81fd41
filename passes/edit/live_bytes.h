#pragma once
// What the micro-step keeps in memory, seen on the graph alone.
#include <cstdint>

#include "graph/ir/graph.h"

namespace zeroplan {

// Largest sum, in bytes, of the computed values of the micro-step that live at one of its nodes: each from its producer to its last reader
// in the order of the graph, a view as long as what it shows. What other programs read lives to the end.
int64_t peak_live_bytes(const Graph& graph);

}  // namespace zeroplan
