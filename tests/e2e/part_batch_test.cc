// Batches that are not full, at the end of an epoch and in an evaluation: every sample counts once, whatever N and V are.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr int64_t kWidth = 4;

RunOptions epochs(double lr, int64_t count) {
  RunOptions run = sgd_run(lr, 0);
  run.epochs = count;
  return run;
}

TinyCase mlp_of(int64_t samples) {
  return TinyCase(tiny_mlp(2, kWidth), {{"x", random_tensor({samples, kWidth}, 1)}, {"t", random_tensor({samples, kWidth}, 2)}});
}

// Classes of x · w, labels with an ignored one.
TinyCase classifier_of(int64_t samples, std::vector<double> labels) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 3}).weight("w", {3, 3}, random_values(9, 5)).node("MatMul", {"x", "w"}, {"scores"});
  model.output("scores", {"N", 3});
  labels.resize(samples, 1);
  return TinyCase(model, {{"x", random_tensor({samples, 3}, 3)}, {"labels", HostTensor::of(DType::i64, {samples}, labels)}});
}

// mean(w·x) over the global batch, 1 … 10, four ranks with two samples each: the second step has two samples.
TEST(T02, TheLastBatchOfAnEpochIsTheMeanOfItsSamples) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {0}).node("Mul", {"w", "x"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"x", floats({10}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})}});
  for (const int ranks : {1, 2, 3, 4})
    for (const int64_t micro_batches : {1, 2, 4, 8})
      for (int stage = 0; stage <= 3; ++stage) {
        const CompileOptions options = sgd_compile(8, ranks, stage, micro_batches);
        EXPECT_NEAR(train(tiny, options, sgd_run(0.1, 1)).weights.at("w").get(0), -0.45, 1e-7) << describe(options);
        const TinyRun run = train(tiny, options, epochs(0.1, 1));
        ASSERT_EQ(run.steps.size(), 2u);
        EXPECT_EQ(run.steps[1].weight, 2);
        EXPECT_EQ(run.steps[1].samples, 2);
        EXPECT_NEAR(run.weights.at("w").get(0), -1.40, 1e-6) << describe(options);
      }
}

// 13 samples in batches of 8: two steps of 8 and 5 per epoch. The weights have the same bits for any number of ranks.
TEST(PartBatch, SameBitsForAnyNumberOfRanks) {
  const TinyCase regression = mlp_of(13), classes = classifier_of(13, {0, 2, -100, 1, -100, 2, 0, 0, 1, -100, 2, 1, 0});
  for (const TinyCase* tiny : {&regression, &classes})
    for (const int64_t micro_batches : {1, 2, 4}) {
      CompileOptions options = sgd_compile(8, 1, 3, micro_batches);
      if (tiny == &classes) options.loss = "softmax_cross_entropy(scores, labels)";
      const TinyRun reference = train(*tiny, options, epochs(0.1, 2));
      EXPECT_EQ(reference.steps.size(), 4u);
      for (const CompileOptions& other : everywhere(options, {2, 3, 4}))
        for (const auto& [name, weights] : train(*tiny, other, epochs(0.1, 2)).weights)
          EXPECT_TRUE(weights == reference.weights.at(name)) << describe(other) << " " << name;
    }
}

// As many micro-batches as there may be: one sample each.
TEST(PartBatch, EqualsTheDenseRun) {
  const TinyCase tiny = mlp_of(13);
  const TinyRun dense = train(tiny, sgd_compile(8, 1, 0, 1), epochs(0.1, 2));
  for (const int64_t micro_batches : {2, 4, 8}) {
    const TinyRun run = train(tiny, sgd_compile(8, 2, 3, micro_batches), epochs(0.1, 2));
    for (size_t i = 0; i < run.steps.size(); ++i) EXPECT_NEAR(run.losses()[i], dense.losses()[i], 1e-6) << micro_batches << " step " << i;
    for (const auto& [name, weights] : dense.weights)
      for (int64_t i = 0; i < weights.count(); ++i) EXPECT_NEAR(run.weights.at(name).get(i), weights.get(i), 1e-6) << micro_batches;
  }
}

// The five samples of the second step make the gradient that a batch of those five makes.
TEST(PartBatch, IsTheBatchOfItsSamples) {
  const TinyCase tiny = mlp_of(13);
  const TinyRun run = train(tiny, sgd_compile(8, 1, 3, 2), epochs(1e-20, 1));
  TinyCase rest = mlp_of(13);
  for (const auto& [name, seed] : {std::pair{"x", 1}, {"t", 2}}) {
    const std::vector<double> all = values_of(random_tensor({13, kWidth}, seed));
    rest.write(name, floats({5, kWidth}, {all.begin() + 8 * kWidth, all.end()}));
  }
  const TinyRun five = train(rest, sgd_compile(5, 1, 3, 1), epochs(1e-20, 1));
  EXPECT_NEAR(run.losses().at(1), five.losses().at(0), 1e-6);
  EXPECT_NEAR(run.steps.at(1).grad_norm, five.steps.at(0).grad_norm, 1e-6);
}

TEST(PartBatch, ShuffledEpochsUseEverySampleOnce) {
  const TinyCase tiny = mlp_of(11);
  RunOptions run = epochs(0.1, 3);
  run.shuffle = true;
  const TinyRun one = train(tiny, sgd_compile(4, 1, 3, 2), run), three = train(tiny, sgd_compile(4, 3, 3, 2), run);
  EXPECT_EQ(one.steps.size(), 9u);
  EXPECT_EQ(one.steps.at(2).weight, 3 * kWidth);
  for (const auto& [name, weights] : one.weights) EXPECT_TRUE(weights == three.weights.at(name)) << name;
}

// 13 samples in micro-batches of 4, 2 and 1.
TEST(PartBatch, EvaluationIsTheMeanOverAllSamples) {
  const std::vector<double> x = random_values(13 * kWidth, 7), start = random_values(kWidth, 8);
  TinyModel model;
  model.input("x", DType::f32, {"N", kWidth})
      .weight("w", {kWidth}, start)
      .node("Mul", {"w", "x"}, {"y"})
      .node("Mul", {"y", "y"}, {"square"});
  model.node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"x", floats({13, kWidth}, x)}});
  double expected = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double y = static_cast<double>(static_cast<float>(x[i])) * static_cast<double>(static_cast<float>(start[i % kWidth]));
    expected += y * y / static_cast<double>(x.size());
  }
  for (const int ranks : {1, 2, 3})
    for (const int64_t micro_batches : {1, 2, 4}) {
      CompileOptions options = sgd_compile(4, ranks, 3, micro_batches);
      options.eval = true;
      const Plan plan = tiny.compile(options);
      const auto executor = make_executor(plan);
      const EvalReport report = executor->evaluate(*tiny.data(plan));
      EXPECT_NEAR(report.loss, expected, 1e-6 * expected) << describe(options);
      EXPECT_EQ(report.samples, 13);
      EXPECT_EQ(report.weight, 13 * kWidth);
    }
}

// Fewer samples than a batch, and than a micro-batch.
TEST(PartBatch, OneSampleIsEnough) {
  const TinyCase tiny = mlp_of(1);
  const TinyRun run = train(tiny, sgd_compile(8, 2, 3, 2), epochs(0.1, 2));
  EXPECT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps.at(0).weight, kWidth);
}

// Each sample against the mean of its batch: a batch that is not full is left out, and the run says so.
TEST(PartBatch, WhatMixesSamplesLeavesItOut) {
  const TinyCase tiny(tiny_mixer(3), {{"x", random_tensor({10, 3}, 4)}});
  EXPECT_EQ(train(tiny, sgd_compile(4), epochs(0.1, 1)).steps.size(), 2u);
  const Plan plan = tiny.compile(sgd_compile(4));
  EXPECT_THAT(left_out(plan, *tiny.data(plan)), HasSubstr("the last 2 samples of each epoch are left out"));
  EXPECT_THAT(plan.report_lines, testing::Contains(HasSubstr("node_rest")));
  EXPECT_EQ(left_out(mlp_of(10).compile(sgd_compile(4)), *tiny.data(plan)), "");
}

// Logits (0, z) of label 0 cost log(1 + e^z).
double logit_of(double loss) { return std::log(std::exp(loss) - 1); }

// Four tokens per sample: three with loss 1 in the first, one with loss 5 in the second; `ignored` in the others.
TinyCase tokens(const std::vector<double>& first, const std::vector<double>& second, double spoilt = 0) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 4, 2}).weight("w", {2}, {1, 1}).node("Mul", {"x", "w"}, {"scores"});
  model.output("scores", {"N", 4, 2});
  std::vector<double> x, labels;
  for (const std::vector<double>* losses : {&first, &second})
    for (size_t i = 0; i < 4; ++i) {
      const bool counts = i < losses->size();
      x.insert(x.end(), {counts ? 0 : spoilt, counts ? logit_of((*losses)[i]) : spoilt});
      labels.push_back(counts ? 0 : -100);
    }
  return TinyCase(model, {{"x", floats({2, 4, 2}, x)}, {"labels", HostTensor::of(DType::i64, {2, 4}, labels)}});
}

CompileOptions token_options(int ranks, int64_t micro_batches = 2) {
  CompileOptions options = sgd_compile(2, ranks, 3, micro_batches);
  options.loss = "softmax_cross_entropy(scores, labels)";
  return options;
}

TEST(T12, TokensOfAllRanksWeighTheSame) {
  const TinyCase tiny = tokens({1, 1, 1}, {5});
  for (const int ranks : {1, 2})
    for (const int64_t micro_batches : {1, 2}) {
      const TinyRun run = train(tiny, token_options(ranks, micro_batches), sgd_run(0.1, 1));
      EXPECT_NEAR(run.losses().at(0), 2.0, 1e-6) << ranks;
      EXPECT_EQ(run.steps.at(0).weight, 4);
    }
}

TEST(T13, ARankWithoutTokensAddsNothing) {
  const TinyCase tiny = tokens({1, 1, 1}, {});
  const Weights one = gradients(tiny, token_options(1));
  for (const int ranks : {1, 2}) {
    const TinyRun run = train(tiny, token_options(ranks), sgd_run(0.1, 1));
    EXPECT_NEAR(run.losses().at(0), 1.0, 1e-6) << ranks;
    EXPECT_TRUE(gradients(tiny, token_options(ranks)).at("w") == one.at("w")) << ranks;
    for (const double g : values_of(one.at("w"))) EXPECT_TRUE(std::isfinite(g));
    EXPECT_GT(run.steps.at(0).grad_norm, 0);
  }
}

TEST(T13, AWindowWithoutTokensChangesNothingAndSaysSoOnce) {
  const TinyCase tiny = tokens({}, {});
  for (const int ranks : {1, 2}) {
    for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adamw}) {
      CompileOptions options = token_options(ranks);
      options.optimizer = optimizer;
      RunOptions run = sgd_run(0.1, 1);
      run.weight_decay = 0.5;
      const TinyRun result = train(tiny, options, run);
      EXPECT_TRUE(result.steps.at(0).skipped);
      EXPECT_EQ(values_of(result.weights.at("w")), (std::vector<double>{1, 1})) << ranks;
    }
    const Outcome outcome = run_command(
        fmt::format("{} train {} --ranks {} --batch 2 --micro-batches 2 --loss 'softmax_cross_entropy(scores, labels)' --data {} --steps 1",
                    kProgram, tiny.model(), ranks, tiny.data_folder()));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    const size_t first = outcome.output.find("nothing was updated");
    EXPECT_NE(first, std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.output.find("nothing was updated", first + 1), std::string::npos);
    EXPECT_NE(outcome.output.find("1 of 1 step skipped: nothing was trained"), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace zeroplan
