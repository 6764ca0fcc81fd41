#pragma once
// State values of a unit, and values that show its parameters.
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// Weights and gradient state of the unit, per its placement. Moments come with the optimizer.
void add_unit_state(Graph& graph, int32_t unit);
ValueId add_state(Graph& graph, const std::string& name, DType dtype, const Shape& shape, int32_t unit = kNone);
// A computed value of the same type and shape: the state after a step has changed it.
ValueId add_successor(Graph& graph, ValueId state, const std::string& name = {});
// By parameter: its leaf, the first where it has several; kNone without one.
std::vector<ValueId> parameter_leaves(const Graph& graph);
// One value per parameter of the unit, a copy of its leaf called <parameter><suffix>.
std::vector<ValueId> add_gathered_copies(Graph& graph, int32_t unit, const std::vector<ValueId>& leaves, const std::string& suffix,
                                         DType dtype);

}  // namespace zeroplan
