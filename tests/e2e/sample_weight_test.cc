// --sample-weight: a number for each sample, inside the final mean; T02 and T13 with it.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

const std::vector<double> kWeights = {1, 0.5, 2, 0, 3, 1, 0.25, 1, 4, 0.5};

// Loss mean(w·x) of x = 1 … 10, with a weight for each.
TinyCase weighted_mean(const std::vector<double>& weights) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {0}).node("Mul", {"w", "x"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"x", floats({10}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})}, {"often", floats({10}, weights)}});
}

CompileOptions weighted(CompileOptions options) {
  options.sample_weight = "often";
  return options;
}

// The mean of x over samples first … last, as often as they count: the gradient of the loss.
double mean_of_x(int first, int last) {
  double sum = 0, weight = 0;
  for (int i = first; i <= last; ++i) {
    sum += kWeights[i - 1] * i;
    weight += kWeights[i - 1];
  }
  return sum / weight;
}

TEST(T02, WeightsOfSamplesAreInsideTheMean) {
  const TinyCase tiny = weighted_mean(kWeights);
  RunOptions epoch = sgd_run(0.1, 0);
  epoch.epochs = 1;
  const double first = -0.1 * mean_of_x(1, 8), second = first - 0.1 * mean_of_x(9, 10);
  for (const int ranks : {1, 2, 3, 4})
    for (const int64_t micro_batches : {1, 2, 4, 8}) {
      const CompileOptions options = weighted(sgd_compile(8, ranks, 3, micro_batches));
      EXPECT_NEAR(train(tiny, options, sgd_run(0.1, 1)).weights.at("w").get(0), first, 1e-6) << describe(options);
      const TinyRun run = train(tiny, options, epoch);
      ASSERT_EQ(run.steps.size(), 2u);
      EXPECT_EQ(run.steps[1].weight, 4.5);
      EXPECT_NEAR(run.weights.at("w").get(0), second, 1e-6) << describe(options);
    }
}

TEST(T02, WeightsOfOneChangeNoBit) {
  const TinyCase tiny = weighted_mean(std::vector<double>(10, 1));
  for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, 4)))
    EXPECT_TRUE(train(tiny, weighted(options), sgd_run(0.1, 3)).weights == train(tiny, options, sgd_run(0.1, 3)).weights);
}

TEST(T13, ARankWithoutWeightAddsNothing) {
  const TinyCase tiny = weighted_mean({1, 2, 0, 0, 1, 1, 1, 1, 1, 1});
  for (const int ranks : {1, 2}) {
    const TinyRun run = train(tiny, weighted(sgd_compile(4, ranks, 3, 2)), sgd_run(0.1, 1));
    EXPECT_NEAR(run.weights.at("w").get(0), -0.1 * (1 + 2 * 2) / 3, 1e-7) << ranks;
    EXPECT_EQ(run.steps.at(0).weight, 3);
    EXPECT_TRUE(std::isfinite(run.steps.at(0).grad_norm));
  }
}

TEST(T13, AWindowWithoutWeightChangesNothing) {
  const TinyCase tiny = weighted_mean({0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  for (const int ranks : {1, 2}) {
    CompileOptions options = weighted(sgd_compile(4, ranks, 3, 2));
    options.optimizer = OptimizerKind::adamw;
    RunOptions run = sgd_run(0.1, 1);
    run.weight_decay = 0.5;
    const TinyRun result = train(tiny, options, run);
    EXPECT_TRUE(result.steps.at(0).skipped);
    EXPECT_EQ(values_of(result.weights.at("w")), (std::vector<double>{0}));
  }
}

TEST(SampleWeight, EvaluationIsWeightedToo) {
  const TinyCase tiny = weighted_mean(kWeights);
  CompileOptions options = weighted(sgd_compile(4, 2, 3, 2));
  options.eval = true;
  const Plan plan = tiny.compile(options);
  const auto executor = make_executor(plan);
  executor->train_step(*tiny.data(plan), 0, nullptr, scalars_of_step(1, 0.1));
  const double w = -0.1 * mean_of_x(1, 4);
  EXPECT_NEAR(executor->evaluate(*tiny.data(plan)).loss, w * mean_of_x(1, 10), 1e-5);
}

TEST(SampleWeight, IsAnOptionOfTheProgram) {
  const TinyCase tiny = weighted_mean(kWeights);
  const std::string train =
      fmt::format("{} train {} --batch 4 --data {} --steps 1 --sample-weight ", kProgram, tiny.model(), tiny.data_folder());
  EXPECT_EQ(run_command(train + "often").code, 0);
  const Outcome outcome = run_command(train + "seldom");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("seldom"));
}

}  // namespace
}  // namespace zeroplan
