// T18 and what belongs to it: batch normalization in training mode, its running statistics, and the modes of its nodes.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int64_t kChannels = 5;

// x[N,C,L] → BN → ·w → loss = mean((y - t)²). Nodes node_b0, …, each with scale, bias, mean, variance b<i>.….
TinyModel normalized(int64_t channels, int64_t length, bool training, int layers = 1) {
  TinyModel model;
  model.input("x", DType::f32, {"N", channels, length}).input("t", DType::f32, {"N", channels, length});
  std::string h = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string b = "b" + std::to_string(i);
    model.weight(b + ".weight", {channels}, std::vector<double>(channels, 1))
        .weight(b + ".bias", {channels}, random_values(channels, i, 0.3));
    model.weight(b + ".running_mean", {channels}, std::vector<double>(channels, 0));
    model.weight(b + ".running_var", {channels}, std::vector<double>(channels, 1));
    std::vector<std::string> outputs = {b};
    if (training) outputs.insert(outputs.end(), {b + ".mean_out", b + ".var_out"});
    model.node("BatchNormalization", {h, b + ".weight", b + ".bias", b + ".running_mean", b + ".running_var"}, outputs,
               {{"training_mode", int64_t{training}}, {"momentum", 0.9}, {"epsilon", 1e-5}});
    h = b;
  }
  model.node("Sub", {h, "t"}, {"difference"}).node("Mul", {"difference", "difference"}, {"square"});
  model.node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

TinyCase random_case(bool training, int layers = 1, int64_t samples = 16) {
  return TinyCase(normalized(kChannels, 3, training, layers),
                  {{"x", random_tensor({samples, kChannels, 3}, 1, 2)}, {"t", random_tensor({samples, kChannels, 3}, 2)}});
}

TinyCase t18() {
  return TinyCase(normalized(1, 1, true), {{"x", floats({4, 1, 1}, {0, 2, 4, 6})}, {"t", floats({4, 1, 1}, {1, 0, 0, 1})}});
}

CompileOptions synchronised(CompileOptions options) {
  options.sync_bn = true;
  return options;
}

// Rank 0 sees 0 and 2, rank 1 sees 4 and 6. The population variance of all four counts, whoever normalizes with what.
TEST(T18, RunningStatisticsAreThoseOfTheWholeBatch) {
  for (const bool sync : {false, true})
    for (CompileOptions options : everywhere(sgd_compile(4, 1, 3, 0), {1, 2, 4})) {
      options.sync_bn = sync;
      const TinyRun run = train(t18(), options, sgd_run(0.1, 1));
      EXPECT_NEAR(run.weights.at("b0.running_mean").get(0), 0.3, 1e-7) << describe(options);
      EXPECT_NEAR(run.weights.at("b0.running_var").get(0), 1.4, 1e-6) << describe(options);
    }
}

TEST(T18, RunningStatisticsAreWholeOnEveryRankAndNotTrained) {
  for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 4), {2, 4})) {
    const Plan plan = random_case(true).compile(options);
    const PlanParameter& mean = plan.parameters[parameter_index(plan, "b0.running_mean")];
    const PlanUnit& unit = plan.units[mean.unit];
    EXPECT_EQ(unit.weights, Placement::replicated);
    EXPECT_EQ(unit.dtype, DType::f32);
    EXPECT_FALSE(unit.trainable);
    EXPECT_TRUE(unit.moment_tensors.empty());
    EXPECT_EQ(unit.gradient_tensor, kNone);
    EXPECT_EQ(unit.parameters.size(), 2u);
  }
}

// With the statistics of all ranks the run is that of one rank with the whole batch.
TEST(SyncBatchNorm, EqualsTheWholeBatch) {
  const TinyCase tiny = random_case(true, 2);
  const TinyRun whole = train(tiny, sgd_compile(8, 1, 0, 1), sgd_run(0.1, 4));
  const TinyRun local = train(tiny, sgd_compile(8, 2), sgd_run(0.1, 4));
  EXPECT_GT(std::abs(local.losses()[0] - whole.losses()[0]), 1e-3);
  for (const CompileOptions& options : everywhere(sgd_compile(8), {2, 4})) {
    const TinyRun run = train(tiny, synchronised(options), sgd_run(0.1, 4));
    for (size_t i = 0; i < run.steps.size(); ++i)
      EXPECT_NEAR(run.losses()[i], whole.losses()[i], 2e-6) << describe(options) << " step " << i;
    for (const auto& [name, weights] : whole.weights)
      for (int64_t i = 0; i < weights.count(); ++i)
        EXPECT_NEAR(run.weights.at(name).get(i), weights.get(i), 2e-5) << describe(options) << " " << name;
  }
}

TEST(SyncBatchNorm, NeedsOneRound) {
  const TinyCase tiny = random_case(true);
  EXPECT_THAT(error_of([&] { tiny.compile(synchronised(sgd_compile(8, 2, 3, 4))); }), HasSubstr("use --micro-batches 2"));
  EXPECT_THAT(error_of([&] { tiny.compile(synchronised(sgd_compile(8, 4, 3, 2))); }), HasSubstr("use --micro-batches 4"));
  EXPECT_THAT(error_of([&] { random_case(false).compile(synchronised(sgd_compile(8, 2))); }), HasSubstr("--train-bn"));
}

TEST(BatchNorm, MicroBatchesGiveTheSameBitsAtAnyNumberOfRanks) {
  const TinyCase tiny = random_case(true, 2);
  const TinyRun expected = train(tiny, sgd_compile(8, 1, 0, 4), sgd_run(0.1, 4));
  EXPECT_NE(expected.losses().front(), expected.losses().back());
  for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, 4)))
    EXPECT_TRUE(train(tiny, options, sgd_run(0.1, 4)).weights == expected.weights) << describe(options);
}

TEST(BatchNorm, MixingOfSamplesIsReported) {
  const auto lines = [](bool training, const CompileOptions& options) { return random_case(training).compile(options).report_lines; };
  EXPECT_THAT(lines(true, sgd_compile(8, 2)), Contains(HasSubstr("the statistics of each micro-batch")));
  EXPECT_THAT(lines(true, sgd_compile(8, 2)), Contains(HasSubstr("--sync-bn takes them over all ranks")));
  EXPECT_THAT(lines(true, synchronised(sgd_compile(8, 2))), Contains(HasSubstr("all ranks' samples of a round")));
  EXPECT_THAT(lines(false, sgd_compile(8, 2)), Contains(HasSubstr("--train-bn PATTERN")));
}

// A node's mode: as the file says, unless told otherwise.
TEST(BatchNorm, PatternsChooseTheMode) {
  const TinyCase evaluated = random_case(false, 2), trained = random_case(true, 2);
  CompileOptions first = sgd_compile(8);
  first.train_bn = {"b0"};
  const Weights one = train(evaluated, first, sgd_run(0.1, 2)).weights;
  EXPECT_EQ(one.count("b1.running_mean"), 0u);
  EXPECT_NE(one.at("b0.running_mean").get(0), 0);
  CompileOptions second = sgd_compile(8);
  second.eval_bn = {"node_b1$"};
  EXPECT_EQ(train(trained, second, sgd_run(0.1, 2)).losses(), train(evaluated, first, sgd_run(0.1, 2)).losses());
  CompileOptions none = sgd_compile(8);
  none.eval_bn = {"b2"};
  EXPECT_THAT(error_of([&] { trained.compile(none); }), HasSubstr("--eval-bn 'b2'"));
}

// Evaluation normalizes with the running statistics, before training and after.
TEST(BatchNorm, EvaluationUsesRunningStatistics) {
  CompileOptions options = sgd_compile(8, 2);
  options.eval = true;
  const TinyCase trained = random_case(true, 1, 8), evaluated = random_case(false, 1, 8);
  const auto before = [&](const TinyCase& tiny, const CompileOptions& o) {
    const Plan plan = tiny.compile(o);
    return make_executor(plan)->evaluate(*tiny.data(plan)).loss;
  };
  EXPECT_NEAR(before(trained, options), before(evaluated, options), 1e-6);

  const Plan plan = trained.compile(options);
  const auto executor = make_executor(plan);
  const auto data = trained.data(plan);
  executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.1));
  const Weights w = all_weights(*executor);
  const HostTensor x = random_tensor({8, kChannels, 3}, 1, 2), t = random_tensor({8, kChannels, 3}, 2);
  double sum = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t c = i / 3 % kChannels;
    const double rstd = 1 / std::sqrt(w.at("b0.running_var").get(c) + 1e-5);
    const double y = (x.get(i) - w.at("b0.running_mean").get(c)) * rstd * w.at("b0.weight").get(c) + w.at("b0.bias").get(c);
    sum += (y - t.get(i)) * (y - t.get(i));
  }
  EXPECT_NEAR(executor->evaluate(*data).loss, sum / static_cast<double>(x.count()), 1e-5);
  EXPECT_TRUE(all_weights(*executor) == w);
}

// A step that is not carried out leaves the statistics as they were; the next one is not disturbed.
TEST(BatchNorm, AStoppedStepChangesNoStatistics) {
  const TinyCase tiny = random_case(true, 1, 16);
  const Plan plan = tiny.compile(sgd_compile(8, 2));
  const auto executor = make_executor(plan);
  const auto data = tiny.data(plan);
  const Weights before = all_weights(*executor);
  executor->request_stop();
  EXPECT_TRUE(executor->train_step(*data, 8, nullptr, scalars_of_step(0, 0.1)).skipped);
  EXPECT_TRUE(all_weights(*executor) == before);
  executor->accumulate(*data, 8, nullptr, scalars_of_step(0, 0.1));
  executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.1));
  EXPECT_TRUE(all_weights(*executor) == train(tiny, sgd_compile(8, 2), sgd_run(0.1, 1)).weights);
}

}  // namespace
}  // namespace zeroplan
