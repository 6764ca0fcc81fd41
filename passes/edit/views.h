#pragma once
// Values that are windows on other values.
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// A view op whose output has an operand of the graph as root; unit_view is none: its outputs are placed like gathered copies.
bool is_view(const Node& node);
// By value: the one at the start of its chain of views (itself where it is no view).
std::vector<ValueId> view_roots(const Graph& graph);

}  // namespace zeroplan
