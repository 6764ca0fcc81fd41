#pragma once
// Graphs as text: printed after any pass, parsed back to an equal graph (constants above 16 elements are written as hex bytes).
//
// One line per thing; `#` starts a comment. Parameters, leaf values, units, then the nodes of each program, then what refers to them:
//   %y:f32[2,3]{parameter=0, unit=1, copy_of=%x} = matmul(%a, -) {axis=1, epsilon=1e-05} unit=0 backward origin="h.1" reason="…"
// Outputs of kind state are declared above and have no type here. Constants and computed values that nothing refers to are not printed.
#include <cstdint>
#include <string>

#include "graph/ir/graph.h"

namespace zeroplan {

std::string print_graph(const Graph& graph);
Graph parse_graph(const std::string& text);  // throws Error with the line
uint64_t graph_hash(const Graph& graph);     // of the printed form

}  // namespace zeroplan
