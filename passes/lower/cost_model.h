#pragma once
// Predicted times of steps: flops, bytes and fixed rates.
#include "graph/ir/graph.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

inline constexpr const char* kCostSource = "built-in CPU estimate";

double predict_us(const Graph& graph, const Node& node, int ranks);
// Finish time of the last step when every step starts as soon as its stream and its waits allow.
double predict_program_us(const PlanProgram& program);

}  // namespace zeroplan
