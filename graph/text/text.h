#pragma once
// Graphs as text: printed after any pass, parsed back to an equal graph (constants above 16 elements are written as hex bytes).
#include <string>

#include "graph/ir/graph.h"

namespace zeroplan {

std::string print_graph(const Graph& graph);
Graph parse_graph(const std::string& text);  // throws Error with the line

}  // namespace zeroplan
