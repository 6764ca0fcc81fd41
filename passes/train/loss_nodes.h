#pragma once
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// By node: does it belong to the loss alone? From the losses backwards, as long as everything reads on towards them, up to the products,
// norms and layers that make the model's outputs and to whatever reads a parameter.
std::vector<bool> loss_nodes(const Graph& graph);

}  // namespace zeroplan
