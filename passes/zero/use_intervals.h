#pragma once
// Which nodes read the parameters of which unit, and the intervals during which a sharded unit has to be gathered (design 2.2).
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/compile_options.h"

namespace zeroplan {

// By value: the parameter that it shows (a leaf, a gathered copy, or a chain of views on one), else kNone.
std::vector<int32_t> shown_parameters(const Graph& graph);
// By parameter: its unit, kNone where it has none.
std::vector<int32_t> parameter_units(const Graph& graph);

// Nodes of one program, in order, that read a parameter of a unit with sharded weights; `units` has no repetitions.
struct UnitUse {
  NodeId node = kNone;
  std::vector<int32_t> units;
};
std::vector<UnitUse> unit_uses(const Graph& graph, Program program);

// Gathered units that may live at once: what the most demanding node reads, plus the prefetch.
int max_live_units(const Graph& graph, const CompileOptions& options);

struct UseInterval {
  int32_t unit = kNone;
  std::vector<NodeId> uses;  // ascending
  std::string reason;        // why it starts here
};

// Intervals of the program by first use. A gap between two runs of uses is kept where the live limit allows it and at most `prefetch` other
// runs lie in it, else the unit is gathered again.
std::vector<UseInterval> use_intervals(const Graph& graph, Program program, int prefetch, int max_live);

}  // namespace zeroplan
