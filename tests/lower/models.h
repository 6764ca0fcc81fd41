#pragma once
// Small training graphs, and the passes from units to a plan.
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/builder.h"
#include "passes/compile_options.h"
#include "runtime/plan/plan.h"

namespace zeroplan::test {

// Adds a parameter and its leaf value.
ValueId add_parameter(Graph& graph, const std::string& name, const Shape& shape, bool trainable = true);
ValueId add_input(Graph& graph, const std::string& name, DType dtype, const Shape& shape);
// The loss is the sum of all elements of y.
void set_sum_loss(Graph& graph, ValueId y);

// x [batch, dims[0]] through matmuls, each followed by relu where `relu`; dims.size() - 1 weights w0, w1, …
Graph chain(int64_t batch, const std::vector<int64_t>& dims, bool relu = false);
// Residual blocks x + relu(norm(x) w1 + b1) w2 with an embedding that is tied to the output projection; labels and cross entropy.
Graph residual(int blocks, int64_t tokens, int64_t width, int64_t vocabulary);

CompileOptions options_of(int ranks, int stage, int prefetch = 1);
// Autodiff up to snapshot_source; every pass checked by verify_graph.
void train_passes(Graph& graph, const CompileOptions& options);
void zero_passes(Graph& graph, const CompileOptions& options);
void lower_passes(Graph& graph, const CompileOptions& options);
Plan compile_graph(Graph graph, const CompileOptions& options);

int count_steps(const Plan& plan, Program program, StepKind kind);
// Largest number of slots that are live at once in issue order.
int live_slots(const PlanProgram& program);

}  // namespace zeroplan::test
