// Types of the operators around the model: the training step, collectives, host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

// A unit of two parameters on two ranks, with the state of Adam.
struct UnitGraph : GraphMaker {
  ValueId weights, gradient, m, v, report, metrics, limbs;

  UnitGraph() {
    for (const Shape& shape : {Shape{2, 3}, Shape{5}}) {
      Parameter parameter;
      parameter.shape = shape;
      graph.parameters.push_back(parameter);
    }
    weights = input({64});
    gradient = input({64});
    m = input({64});
    v = input({64});
    report = input({16}, DType::f64);
    metrics = input({6}, DType::f64);
    limbs = input({68}, DType::i64);
    Unit unit;
    unit.name = "u";
    unit.parameters = {{0, 0, 6}, {1, 64, 5}};
    unit.padded_elements = 128;
    unit.shard_elements = 64;
    unit.weights_state = weights;
    unit.gradient_shard = gradient;
    unit.moments = {m, v};
    graph.units.push_back(unit);
  }

  std::vector<OutputType> of_unit(OpKind op, std::vector<ValueId> inputs, Program program = Program::micro_step,
                                  Attributes attributes = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.unit = 0;
    node.program = program;
    node.attributes = std::move(attributes);
    return infer_node(graph, node);
  }
};

TEST(StepInfer, GatherOfWeightsGivesParametersOrFillsTheReplicatedBuffer) {
  UnitGraph g;
  const auto parameters = g.of_unit(OpKind::gather_weights, {g.weights});
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].shape, (Shape{2, 3}));
  EXPECT_EQ(parameters[1].shape, (Shape{5}));
  EXPECT_THROW(g.of_unit(OpKind::gather_weights, {g.input({128})}), Error);
  EXPECT_THROW(g.of_unit(OpKind::gather_weights, {g.input({64}, DType::f64)}), Error);
  EXPECT_THAT(g.refusal(OpKind::gather_weights, {g.weights}), HasSubstr("belongs to no unit"));
  g.graph.units[0].weights = Placement::replicated;
  const auto whole = g.of_unit(OpKind::gather_weights, {g.input({128})}, Program::update);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].shape, (Shape{128}));
  EXPECT_THROW(g.of_unit(OpKind::gather_weights, {g.weights}, Program::update), Error);
}

TEST(StepInfer, GatherOfTheGradientGivesTheWholeBuffer) {
  UnitGraph g;
  const auto whole = g.of_unit(OpKind::gather_gradient, {g.gradient}, Program::update);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].shape, (Shape{128}));
  EXPECT_THROW(g.of_unit(OpKind::gather_gradient, {g.input({128})}, Program::update), Error);
}

TEST(StepInfer, GradientsHaveATypeOfTheirOwn) {
  UnitGraph g;
  g.graph.units[0].gradient_dtype = g.graph.units[0].reduce_dtype = DType::f64;
  const ValueId shard = g.input({64}, DType::f64), first = g.input({2, 3}, DType::f64), second = g.input({5}, DType::f64);
  EXPECT_EQ(g.of_unit(OpKind::reduce_scatter, {shard, first, second})[0].dtype, DType::f64);
  EXPECT_EQ(g.of_unit(OpKind::fill_padding, {first, second})[0].dtype, DType::f64);
  EXPECT_EQ(g.of_unit(OpKind::gather_gradient, {shard}, Program::update)[0].dtype, DType::f64);
  EXPECT_EQ(g.of_unit(OpKind::gather_weights, {g.weights})[0].dtype, DType::f32);
  EXPECT_THROW(g.of_unit(OpKind::gather_gradient, {g.gradient}, Program::update), Error);
}

TEST(StepInfer, ReduceScatterTakesGradientsInUnitOrder) {
  UnitGraph g;
  const ValueId first = g.input({2, 3}), second = g.input({5}), token = g.input({128});
  EXPECT_EQ(g.of_unit(OpKind::reduce_scatter, {g.gradient, first, second})[0].shape, (Shape{64}));
  EXPECT_EQ(g.of_unit(OpKind::reduce_scatter, {kNone, first, second, token})[0].shape, (Shape{64}));  // from zero
  EXPECT_EQ(g.of_unit(OpKind::reduce_scatter, {g.gradient, first, second, token})[0].shape, (Shape{64}));
  EXPECT_EQ(g.of_unit(OpKind::fill_padding, {first, second})[0].shape, (Shape{128}));
  EXPECT_THROW(g.of_unit(OpKind::reduce_scatter, {g.gradient, second, first}), Error);
  EXPECT_THROW(g.of_unit(OpKind::reduce_scatter, {g.gradient, first}), Error);
  EXPECT_THROW(g.of_unit(OpKind::fill_padding, {second, first}), Error);
}

TEST(StepInfer, LoadExportFree) {
  UnitGraph g;
  EXPECT_EQ(g.of_unit(OpKind::load_unit, {}).size(), 4u);
  const ValueId first = g.input({2, 3}), second = g.input({5});
  EXPECT_TRUE(g.of_unit(OpKind::export_unit, {first, second}).empty());
  EXPECT_TRUE(g.of_unit(OpKind::free_unit, {first, second}).empty());
  EXPECT_THROW(g.of_unit(OpKind::export_unit, {first}), Error);
}

TEST(StepInfer, OptimizerChecksItsMoments) {
  UnitGraph g;
  const auto update = [&](const char* optimizer, std::vector<ValueId> inputs) {
    return g.of_unit(OpKind::optimizer_update, std::move(inputs), Program::update, {{Attr::optimizer, std::string(optimizer)}}).size();
  };
  EXPECT_EQ(update("adamw", {g.weights, g.gradient, g.report, g.m, g.v}), 4u);
  EXPECT_EQ(update("sgd", {g.weights, g.gradient, g.report}), 2u);
  EXPECT_EQ(update("sgd", {g.weights, g.gradient, g.report, g.m}), 3u);
  EXPECT_THROW(update("adam", {g.weights, g.gradient, g.report, g.m}), Error);
  EXPECT_THROW(update("lion", {g.weights, g.gradient, g.report, g.m}), Error);
  EXPECT_THROW(update("sgd", {g.weights, g.gradient, g.metrics, g.input({32})}), Error);
}

TEST(StepInfer, LossesAndNorms) {
  UnitGraph g;
  const ValueId sum = g.input({}), weight = g.input({});
  EXPECT_EQ(g.shape(OpKind::record_loss, {sum, weight, g.metrics}), (Shape{6}));
  EXPECT_EQ(g.shape(OpKind::record_loss, {sum, kNone, g.metrics}), (Shape{6}));
  EXPECT_THAT(g.refusal(OpKind::record_loss, {g.input({1}), weight, g.metrics}), HasSubstr("sum"));
  EXPECT_EQ(g.shape(OpKind::fold_metrics, {g.metrics, g.report}), (Shape{16}));
  EXPECT_EQ(g.infer(OpKind::grad_norm, {g.gradient, g.report, g.limbs})[0].dtype, DType::i64);
  const auto clip = g.infer(OpKind::clip_factor, {g.limbs, g.report});
  EXPECT_EQ(clip[0].shape, (Shape{16}));
  EXPECT_EQ(clip[1].shape, (Shape{68}));
  EXPECT_THAT(g.refusal(OpKind::clip_factor, {g.report, g.limbs}), HasSubstr("limbs"));
}

TEST(StepInfer, StatisticsHaveARowPerMicroBatch) {
  UnitGraph g;
  const ValueId mean = g.input({5}), statistics = g.input({3, 10}, DType::f64), report = g.report;
  EXPECT_EQ(g.shape(OpKind::record_statistics, {mean, mean, statistics}), (Shape{3, 10}));
  EXPECT_THROW(g.infer(OpKind::record_statistics, {mean, mean, g.input({3, 9}, DType::f64)}), Error);
  EXPECT_THROW(g.infer(OpKind::record_statistics, {mean, mean, g.input({3, 10})}), Error);
  const auto folded = [&](std::vector<int64_t> starts, double momentum) {
    return g.infer(OpKind::fold_statistics, {g.weights, statistics, report},
                   {{Attr::starts, std::move(starts)}, {Attr::momentum, momentum}});
  };
  EXPECT_EQ(folded({0, 59}, 0.9)[1].shape, (Shape{3, 10}));
  EXPECT_THROW(folded({0, 60}, 0.9), Error);
  EXPECT_THROW(folded({0}, 0.9), Error);
  EXPECT_THROW(folded({0, 5}, 1.5), Error);
}

}  // namespace
}  // namespace zeroplan
