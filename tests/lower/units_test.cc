#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "passes/passes.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

Graph partitioned(Graph graph, const CompileOptions& options) {
  train_passes(graph, options);
  partition_units(graph, options);
  return graph;
}

std::vector<std::string> unit_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Unit& unit : graph.units) names.push_back(unit.name);
  return names;
}

TEST(PartitionUnits, EachParameterIsInOneUnitAtAnAlignedPlaceOfItsOwn) {
  for (int ranks : {1, 3, 64}) {
    const Graph graph = partitioned(residual(3, 8, 12, 50), options_of(ranks, 3));
    std::vector<int> seen(graph.parameters.size(), 0);
    for (const Unit& unit : graph.units) {
      EXPECT_EQ(unit.shard_elements % 64, 0);
      EXPECT_EQ(unit.padded_elements, unit.shard_elements * ranks);
      int64_t end = 0;
      for (const UnitParameter& member : unit.parameters) {
        ++seen[member.parameter];
        EXPECT_EQ(member.offset % 64, 0);
        EXPECT_GE(member.offset, end);
        EXPECT_EQ(member.elements, elements(graph.parameters[member.parameter].shape));
        end = member.offset + member.elements;
      }
      EXPECT_LE(end, unit.padded_elements);
      EXPECT_LT(unit.padded_elements - end, 64 * ranks + 64);
    }
    EXPECT_THAT(seen, testing::Each(1));
  }
}

TEST(PartitionUnits, PatternMakesAUnitPerMatch) {
  CompileOptions options = options_of(2, 3);
  options.unit_patterns = {R"(h\.(\d+)\.)"};
  const Graph graph = partitioned(residual(3, 8, 12, 50), options);
  EXPECT_THAT(unit_names(graph), testing::ElementsAre("wte.weight", "h.0", "h.1", "h.2"));
}

TEST(PartitionUnits, PatternThatMatchesNothingIsAnError) {
  CompileOptions options = options_of(2, 3);
  options.unit_patterns = {"layers"};
  EXPECT_THROW(partitioned(residual(1, 8, 12, 50), options), Error);
  options.unit_patterns = {"h.("};
  EXPECT_THROW(partitioned(residual(1, 8, 12, 50), options), Error);
}

TEST(PartitionUnits, BlockBordersAreCutPoints) {
  CompileOptions options = options_of(2, 3);
  // One block (2 · 12 · 48 weights, 48 + 24 small ones) fits, two do not.
  options.unit_bytes = 4 * (2 * 12 * 48 + 72) + 100;
  const Graph graph = partitioned(residual(3, 8, 12, 50), options);
  EXPECT_THAT(unit_names(graph), testing::ElementsAre("wte.weight", "h.0", "h.1", "h.2"));
}

TEST(PartitionUnits, LargerUnitBytesMergeNeighbours) {
  CompileOptions options = options_of(2, 3);
  options.unit_bytes = 1 << 20;
  EXPECT_EQ(partitioned(residual(3, 8, 12, 50), options).units.size(), 2u);  // the tied table stays alone
}

TEST(PartitionUnits, SmallParametersJoinANeighbour) {
  Graph graph;
  Builder build(graph);
  ValueId x = add_input(graph, "x", DType::f32, {4, 32});
  for (const char* name : {"a", "b"}) {
    const ValueId w = add_parameter(graph, std::string(name) + ".w", {32, 32}),
                  bias = add_parameter(graph, std::string(name) + ".bias", {32});
    x = build.add(OpKind::relu, {build.add(OpKind::add, {build.add(OpKind::matmul, {x, w}), bias})});
  }
  set_sum_loss(graph, x);
  CompileOptions options = options_of(2, 3);
  options.unit_bytes = 4 * 32 * 32;  // a weight alone fills it
  EXPECT_THAT(unit_names(partitioned(std::move(graph), options)), testing::ElementsAre("a", "b"));
}

TEST(PartitionUnits, FrozenParametersHaveUnitsWithoutGradient) {
  Graph graph;
  Builder build(graph);
  const ValueId x = add_input(graph, "x", DType::f32, {2, 8});
  const ValueId frozen = add_parameter(graph, "frozen", {8, 8}, false), live = add_parameter(graph, "live", {8, 8});
  set_sum_loss(graph, build.add(OpKind::matmul, {build.add(OpKind::matmul, {x, frozen}), live}));
  CompileOptions options = options_of(2, 3);
  options.unit_bytes = 1 << 20;
  graph = partitioned(std::move(graph), options);
  ASSERT_THAT(unit_names(graph), testing::ElementsAre("frozen", "live"));
  EXPECT_FALSE(graph.units[0].trainable);
  EXPECT_TRUE(graph.units[1].trainable);
  const Plan plan = compile_graph(chain(2, {8, 8}), options);
  EXPECT_EQ(plan.units[0].moment_tensors.size(), 2u);
}

// T09: two untied tables and a small parameter; no reduce buffer above the limit.
TEST(PartitionUnits, ReduceBytesBoundsTheReduceBuffer) {
  Graph graph;
  Builder build(graph);
  const ValueId ids = add_input(graph, "ids", DType::i64, {4});
  const ValueId a = add_parameter(graph, "a", {1000, 64}), b = add_parameter(graph, "b", {1000, 64}), c = add_parameter(graph, "c", {8, 8});
  const Attributes first_axis = {{Attr::axis, int64_t{0}}};
  const ValueId rows =
      build.add(OpKind::add, {build.add(OpKind::gather, {a, ids}, first_axis), build.add(OpKind::gather, {b, ids}, first_axis)});
  set_sum_loss(graph, build.add(OpKind::matmul, {build.reshape(rows, {32, 8}), c}));
  CompileOptions options = options_of(4, 3);
  options.unit_bytes = 1 << 20;
  EXPECT_EQ(partitioned(graph, options).units.size(), 1u);
  options.reduce_bytes = 300000;
  const Plan plan = compile_graph(graph, options);
  EXPECT_EQ(plan.units.size(), 2u);
  for (const PlanTensor& tensor : plan.tensors) {
    if (tensor.kind == TensorKind::reduce_buffer) {
      EXPECT_LE(elements(tensor.shape) * 4, 300000);
    }
  }
}

TEST(PartitionUnits, PlacementFollowsTheStage) {
  const Placement r = Placement::replicated, s = Placement::sharded;
  const std::vector<std::array<Placement, 3>> expected = {{r, r, r}, {r, r, s}, {r, s, s}, {s, s, s}};
  for (int stage = 0; stage < 4; ++stage) {
    const Graph graph = partitioned(chain(2, {8, 8}), options_of(2, stage));
    EXPECT_EQ((std::array{graph.units[0].weights, graph.units[0].gradients, graph.units[0].optimizer}), expected[stage]);
  }
}

}  // namespace
}  // namespace zeroplan::test
