#pragma once
// Parameters to groups that become units (design 2.2): by pattern, else between cut points of the forward.
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/compile_options.h"

namespace zeroplan {

// Where the forward (of micro_step, or of eval_step in a forward plan) reads a parameter, and the bytes that cross the places in between.
struct ForwardUses {
  std::vector<std::vector<int>> positions;  // by parameter: ascending positions of reading nodes
  std::vector<int64_t> crossing;            // [i]: bytes of activations made at or before position i and read after it
};
ForwardUses forward_uses(const Graph& graph);

struct ParameterGroup {
  std::vector<int32_t> parameters;  // by first use
  bool trainable = true;
  bool statistics = false;  // all are running statistics
};
// Every parameter in exactly one group; groups by first use, running statistics last. A group between cuts that is below an eighth of the
// target joins a neighbour. Throws Error for a pattern that is malformed or matches nothing.
std::vector<ParameterGroup> group_parameters(const Graph& graph, const CompileOptions& options);

// Trainable, and reached by the gradient.
bool gets_gradient(const Graph& graph, int32_t parameter);
int64_t parameter_bytes(const Graph& graph, int32_t parameter);
// Bytes that unit sizes are aimed at: options.unit_bytes, or chosen from the model's size.
int64_t target_unit_bytes(const Graph& graph, const CompileOptions& options);

}  // namespace zeroplan
