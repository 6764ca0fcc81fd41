#pragma once
// Who reads a value, over the whole graph: nodes, wanted outputs, losses, gradients, state.
#include <map>
#include <set>

#include "graph/ir/graph.h"

namespace zeroplan {

// Values that must survive: losses, wanted outputs, gradients, both sides of state updates.
std::set<ValueId> root_values(const Graph& graph);
// Replaces reads (operands, outputs, losses, gradients, state) by way of `replacement`, which is followed to its end. Returns whether any
// was.
bool replace_reads(Graph& graph, const std::map<ValueId, ValueId>& replacement);
// Drops every node that no root needs; collectives and host steps stay. Producers are recomputed. Returns whether any was dropped.
bool drop_dead_nodes(Graph& graph);

}  // namespace zeroplan
