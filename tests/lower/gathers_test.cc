#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "passes/pass.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

Graph four_products() { return chain(8, {10, 100, 10, 100, 10}); }

int64_t gathered_bytes_before_alignment(const Plan& plan) {
  int64_t live = 0, most = 0;
  for (const Step& step : find_program(plan, Program::micro_step)->steps) {
    int64_t bytes = 0;
    if (step.unit != kNone)
      for (const UnitParameter& member : plan.units[step.unit].parameters)
        bytes += member.elements * dtype_bytes(plan.units[step.unit].dtype);
    if (step.kind == StepKind::all_gather) most = std::max(most, live += bytes);
    if (step.kind == StepKind::free) live -= bytes;
  }
  return most;
}

// T06: four products of 1,000 weights each, Adam, 4 ranks.
TEST(Gathers, BytesOfFourProducts) {
  CompileOptions options = options_of(4, 3);
  options.optimizer = OptimizerKind::adam;
  const Plan plan = compile_graph(four_products(), options);
  ASSERT_EQ(plan.units.size(), 4u);
  int64_t weights = 0, gradients = 0, moments = 0;
  for (const PlanUnit& unit : plan.units) {
    EXPECT_EQ(unit.shard_elements, 256);  // 250 before alignment
    weights += 4 * unit.shard_elements;
    gradients += 4 * elements(plan.tensors[unit.gradient_tensor].shape);
    for (int32_t moment : unit.moment_tensors) moments += 4 * elements(plan.tensors[moment].shape);
  }
  EXPECT_EQ(weights, 4096);
  EXPECT_EQ(gradients, 4096);
  EXPECT_EQ(moments, 8192);
  EXPECT_LE(gathered_bytes_before_alignment(plan), 8000);
}

// T07: live units are 1, 2, 4 at most.
TEST(Gathers, PrefetchBoundsLiveUnits) {
  for (int prefetch : {0, 1, 3}) {
    const Plan plan = compile_graph(four_products(), options_of(4, 3, prefetch));
    EXPECT_LE(live_slots(*find_program(plan, Program::micro_step)), 1 + prefetch);
    EXPECT_LE(live_slots(*find_program(plan, Program::save)), 1 + prefetch);
    EXPECT_EQ(plan.header.max_live_units, 1 + prefetch);
    EXPECT_LE(gathered_bytes_before_alignment(plan), 4000 * (1 + prefetch));
  }
}

TEST(Gathers, PrefetchRunsAhead) {
  for (int prefetch : {0, 1, 2}) {
    const Plan plan = compile_graph(chain(8, {16, 16, 16, 16, 16, 16}), options_of(2, 3, prefetch));
    EXPECT_EQ(live_slots(*find_program(plan, Program::micro_step)), 1 + prefetch);
    for (const Step& step : find_program(plan, Program::micro_step)->steps) {
      if (step.kind == StepKind::all_gather) {
        EXPECT_THAT(step.reason, testing::HasSubstr("bound by"));
      }
    }
  }
}

// T25: the last unit is kept between forward and backward.
TEST(Gathers, CountsOfFourUnits) {
  for (int prefetch : {0, 1}) {
    const Plan plan = compile_graph(chain(8, {10, 100, 10, 100, 10}, true), options_of(4, 3, prefetch));
    EXPECT_LE(count_steps(plan, Program::micro_step, StepKind::all_gather), 4 + 3);
    EXPECT_EQ(count_steps(plan, Program::micro_step, StepKind::reduce_scatter), 4);
    EXPECT_EQ(count_steps(plan, Program::micro_step, StepKind::all_gather), count_steps(plan, Program::micro_step, StepKind::free));
    EXPECT_EQ(count_steps(plan, Program::save, StepKind::all_gather), 4);
  }
}

TEST(Gathers, NodeThatReadsTwoUnitsRaisesTheLimit) {
  Graph graph;
  Builder build(graph);
  const ValueId a = add_parameter(graph, "a", {8, 8}), b = add_parameter(graph, "b", {8, 8});
  set_sum_loss(graph, build.add(OpKind::matmul, {a, build.transpose(b, {1, 0})}));
  CompileOptions options = options_of(2, 3, 0);
  options.unit_patterns = {"a", "b"};
  const Plan plan = compile_graph(graph, options);
  EXPECT_EQ(plan.header.max_live_units, 2);
  EXPECT_EQ(live_slots(*find_program(plan, Program::micro_step)), 2);
}

TEST(Gathers, ReplicatedWeightsAreNeverGatheredInTheMicroStep) {
  for (int stage : {0, 1, 2}) {
    const Plan plan = compile_graph(four_products(), options_of(4, stage));
    EXPECT_EQ(count_steps(plan, Program::micro_step, StepKind::all_gather), 0);
    EXPECT_EQ(count_steps(plan, Program::update, StepKind::all_gather), 4);
    EXPECT_EQ(count_steps(plan, Program::micro_step, StepKind::reduce_scatter), 4);
  }
}

TEST(Gathers, PlanSizeDoesNotDependOnRanks) {
  for (int stage : {0, 1, 2, 3}) {
    const Plan few = compile_graph(residual(3, 8, 16, 64), options_of(2, stage)),
               many = compile_graph(residual(3, 8, 16, 64), options_of(512, stage));
    ASSERT_EQ(few.programs.size(), many.programs.size());
    EXPECT_EQ(few.tensors.size(), many.tensors.size());
    EXPECT_EQ(few.values.size(), many.values.size());
    for (size_t i = 0; i < few.programs.size(); ++i) EXPECT_EQ(few.programs[i].steps.size(), many.programs[i].steps.size());
  }
}

TEST(Gathers, CompilingTwiceGivesTheSamePlan) {
  const CompileOptions options = options_of(3, 3);
  EXPECT_EQ(serialize_plan(compile_graph(residual(4, 8, 16, 64), options)), serialize_plan(compile_graph(residual(4, 8, 16, 64), options)));
}

// The whole pipeline, which checks that every pass reports whether it changed the graph.
TEST(Pipeline, RunsFromForwardToPlan) {
  for (int stage : {0, 3}) {
    Graph graph = residual(2, 8, 16, 64);
    CompileOptions options = options_of(2, stage);
    options.eval = true;
    run_pipeline(graph, options);
    EXPECT_EQ(emit_plan(graph, options).programs.size(), 6u);
  }
}

}  // namespace
}  // namespace zeroplan::test
