// Gradients that need a place of their own, and operands that need a copy.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "runtime/plan/verifier.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

int count_op(const Graph& graph, OpKind op) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == op;
  return count;
}

// Both parameters have the same gradient, the broadcast seed: one value for two places.
Graph sum_of_two() {
  Graph graph;
  Builder build(graph);
  const ValueId a = add_parameter(graph, "a", {8, 8}), b = add_parameter(graph, "b", {8, 8});
  set_sum_loss(graph, build.add(OpKind::relu, {build.add(OpKind::add, {a, b})}));
  return graph;
}

TEST(ReduceScatter, SharedGradientIsCopied) {
  for (int stage : {0, 3}) {
    Graph graph = sum_of_two();
    const CompileOptions options = options_of(2, stage);
    train_passes(graph, options);
    ASSERT_EQ(graph.gradients.at(0), graph.gradients.at(1));
    zero_passes(graph, options);
    EXPECT_GE(count_op(graph, OpKind::copy), 1);
    EXPECT_TRUE(verify_plan(compile_graph(sum_of_two(), options)).ok());
  }
}

TEST(ReduceScatter, GradientOfATransposedParameterIsNoView) {
  Graph graph;
  Builder build(graph);
  const ValueId x = add_input(graph, "x", DType::f32, {2, 6}), w = add_parameter(graph, "w", {4, 6});
  set_sum_loss(graph, build.add(OpKind::matmul, {x, build.transpose(w, {1, 0})}));
  EXPECT_TRUE(verify_plan(compile_graph(graph, options_of(2, 3))).ok());
}

TEST(ReduceScatter, GradientsLieInTheReduceBuffer) {
  const Plan plan = compile_graph(residual(2, 8, 12, 50), options_of(3, 3));
  for (const Step& step : find_program(plan, Program::micro_step)->steps) {
    if (step.kind != StepKind::reduce_scatter) continue;
    const PlanUnit& unit = plan.units[step.unit];
    const int64_t begin = plan.tensors[step.inputs[1].tensor].offset;
    for (size_t i = 0; i < unit.parameters.size(); ++i)
      EXPECT_EQ(plan.tensors[step.inputs[2 + i].tensor].offset, begin + 4 * unit.parameters[i].offset);
  }
}

// The tied table's two contributions are added up in the reduce buffer itself.
TEST(ReduceScatter, ContributionsAreAddedInPlace) {
  const Plan plan = compile_graph(residual(2, 8, 12, 50), options_of(3, 3));
  int in_place = 0;
  for (const Step& step : find_program(plan, Program::micro_step)->steps)
    if (step.op == OpKind::add && !step.in_place.empty())
      in_place += plan.tensors[step.outputs[0].tensor].kind == TensorKind::reduce_buffer;
  EXPECT_EQ(in_place, 1);
}

TEST(MaterializeViews, ReshapeOfATransposeIsCopied) {
  Graph graph;
  Builder build(graph);
  const ValueId x = add_input(graph, "x", DType::f32, {4, 6}), w = add_parameter(graph, "w", {6, 4});
  const ValueId y = build.add(OpKind::matmul, {x, w});
  set_sum_loss(graph, build.add(OpKind::relu, {build.reshape(build.transpose(build.add(OpKind::add, {y, y}), {1, 0}), {2, 8})}));
  const CompileOptions options = options_of(2, 3);
  train_passes(graph, options);
  zero_passes(graph, options);
  const int copies = count_op(graph, OpKind::copy);
  lower_passes(graph, options);
  EXPECT_GT(count_op(graph, OpKind::copy), copies);
  EXPECT_FALSE(materialize_views(graph, options));  // nothing is left to do
}

TEST(InsertAllGather, ViewsOfAParameterAreClonedPerInterval) {
  Graph graph = residual(3, 8, 12, 50);
  const CompileOptions options = options_of(2, 3, 0);
  train_passes(graph, options);
  const ValueId view = graph.find("logits") == kNone ? kNone : graph.nodes[graph.values[graph.find("logits")].producer].inputs[1];
  ASSERT_NE(view, kNone);
  zero_passes(graph, options);
  EXPECT_EQ(graph.values[view].producer, kNone);
  for (const Node& node : graph.nodes)
    for (ValueId input : node.inputs) {
      if (input != kNone) {
        EXPECT_NE(graph.values[input].kind, ValueKind::parameter);
      }
    }
}

}  // namespace
}  // namespace zeroplan::test
