// Frozen parameters, unit patterns, and a trained model that goes round through its file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kWidth = 4;

TinyCase mlp_case(int layers) {
  return TinyCase(tiny_mlp(layers, kWidth), {{"x", random_tensor({8, kWidth}, 1)}, {"t", random_tensor({8, kWidth}, 2)}});
}

TEST(Roles, FrozenParametersKeepTheirBitsAndCostNothing) {
  const TinyCase tiny = mlp_case(3);
  CompileOptions base;  // AdamW
  base.batch = 4;
  base.micro_batches = 4;
  base.freeze = {"layers\\.1"};
  for (const CompileOptions& options : everywhere(base)) {
    const Plan plan = tiny.compile(options);
    const Weights before = all_weights(*make_executor(plan));
    const TinyRun run = train(tiny, options, sgd_run(0.01, 3));
    for (const auto& [name, weights] : run.weights)
      EXPECT_EQ(weights == before.at(name), name.find("layers.1") == 0) << describe(options) << " " << name;
    int frozen = 0;
    for (const PlanUnit& unit : plan.units) {
      EXPECT_EQ(unit.trainable, unit.gradient_tensor != kNone);
      EXPECT_EQ(unit.trainable ? 2u : 0u, unit.moment_tensors.size());
      for (const UnitParameter& p : unit.parameters) {
        const bool in_layer_one = plan.parameters[p.parameter].parameter.name.find("layers.1") == 0;
        EXPECT_EQ(in_layer_one, !unit.trainable) << describe(options);
        frozen += in_layer_one;
      }
    }
    EXPECT_EQ(frozen, 2);
    EXPECT_EQ(plan.gradients.size(), 4u);
  }
}

// The gradient still flows through a frozen layer to the one before it.
TEST(Roles, FrozenLayersPassTheGradientOn) {
  const TinyCase tiny = mlp_case(3);
  CompileOptions options = sgd_compile(8);
  const Weights all = gradients(tiny, options);
  options.freeze = {"layers\\.[12]"};
  const Weights some = gradients(tiny, options);
  EXPECT_EQ(some.size(), 2u);
  EXPECT_TRUE(some.at("layers.0.weight") == all.at("layers.0.weight"));
}

TEST(Roles, PatternsThatMatchNothingAreRefused) {
  const TinyCase tiny = mlp_case(2);
  CompileOptions freeze = sgd_compile(4), unit = sgd_compile(4), broken = sgd_compile(4);
  freeze.freeze = {"layer_norm"};
  EXPECT_THAT(error_of([&] { tiny.compile(freeze); }), AllOf(HasSubstr("--freeze"), HasSubstr("layer_norm")));
  unit.unit_patterns = {"h\\.(\\d+)\\."};
  EXPECT_THAT(error_of([&] { tiny.compile(unit); }), AllOf(HasSubstr("--unit"), HasSubstr("h\\.(\\d+)\\.")));
  broken.unit_patterns = {"layers(\\d"};
  EXPECT_THAT(error_of([&] { tiny.compile(broken); }), AllOf(HasSubstr("--unit"), HasSubstr("layers(\\d")));
  RunOptions run = sgd_run(0.1, 1);
  run.no_decay = {"norm"};
  EXPECT_THAT(error_of([&] { train(tiny, sgd_compile(4), run); }), AllOf(HasSubstr("--no-decay"), HasSubstr("norm")));
}

TEST(Roles, FreezingEverythingIsRefused) {
  CompileOptions options = sgd_compile(4);
  options.freeze = {"."};
  EXPECT_NE(error_of([&] { mlp_case(2).compile(options); }), "no error");
}

TEST(Units, APatternMakesOneUnitPerMatch) {
  const TinyCase tiny = mlp_case(3);
  CompileOptions options = sgd_compile(4, 2);
  options.unit_patterns = {"layers\\.(\\d+)\\."};
  const Plan plan = tiny.compile(options);
  ASSERT_EQ(plan.units.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.units[i].name, "layers." + std::to_string(i));
    EXPECT_EQ(plan.units[i].parameters.size(), 2u);
    for (const UnitParameter& p : plan.units[i].parameters) {
      EXPECT_THAT(plan.parameters[p.parameter].parameter.name, HasSubstr(plan.units[i].name));
      EXPECT_EQ(p.offset % 64, 0);
    }
  }
  CompileOptions automatic = sgd_compile(4, 2);
  EXPECT_TRUE(gradients(tiny, options) == gradients(tiny, automatic));
}

TEST(Export, ReimportedModelIsTheTrainedOne) {
  const TinyCase tiny = mlp_case(2);
  for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 4), {1, 4})) {
    const Plan plan = tiny.compile(options);
    const auto executor = make_executor(plan);
    const auto data = tiny.data(plan);
    run_training(*executor, *data, nullptr, sgd_run(0.05, 3), [](const RunEvent&) {});
    export_trained(*executor, tiny.file("trained.onnx"));
    const Plan again = compile(tiny.file("trained.onnx"), options);
    const auto reopened = make_executor(again);
    EXPECT_TRUE(all_weights(*reopened) == all_weights(*executor)) << describe(options);
    const RunScalars scalars = scalars_of_step(3, 0.05);
    EXPECT_EQ(reopened->train_step(*data, 4, nullptr, scalars).loss, executor->train_step(*data, 4, nullptr, scalars).loss)
        << describe(options);
  }
}

TEST(Export, AModelThatChangedAfterCompileIsRefused) {
  const TinyCase tiny = mlp_case(1);
  const Plan plan = tiny.compile(sgd_compile(4));
  tiny_mlp(2, kWidth).save(tiny.model());
  EXPECT_THAT(error_of([&] { make_executor(plan); }), HasSubstr("digest"));
}

}  // namespace
}  // namespace zeroplan
