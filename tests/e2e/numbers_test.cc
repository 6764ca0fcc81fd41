// Gradients, norms and weights against numbers worked out by hand, at every rank count and stage.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

HostTensor one_to(int64_t last) {
  std::vector<double> values;
  for (int64_t i = 1; i <= last; ++i) values.push_back(static_cast<double>(i));
  return floats({last}, values);
}

// loss = mean(w·x): the gradient of a step is the mean of its x.
TEST(T02, EqualLocalBatches) {
  const TinyCase tiny(tiny_linear({}, {0}), {{"x", one_to(16)}});
  HostTensor bits;
  for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, 4))) {
    const HostTensor first = train(tiny, options, sgd_run(0.1, 1)).weights.at("w");
    EXPECT_NEAR(first.get(0), -0.45, 1e-7) << describe(options);  // mean of 1…8 is 4.5
    const HostTensor second = train(tiny, options, sgd_run(0.1, 2)).weights.at("w");
    EXPECT_NEAR(second.get(0), -1.70, 2e-7) << describe(options);  // mean of 9…16 is 12.5
    if (bits.count() == 0) bits = second;
    EXPECT_TRUE(second == bits) << describe(options);
  }
}

// Five micro-batches on 1, 2 and 4 ranks: the last round leaves ranks without one.
TEST(T02, MicroBatchesThatDoNotDivideAmongRanks) {
  const TinyCase tiny(tiny_linear({}, {0}), {{"x", one_to(10)}});
  HostTensor bits;
  for (const CompileOptions& options : everywhere(sgd_compile(5, 1, 3, 5))) {
    const TinyRun run = train(tiny, options, sgd_run(0.1, 2));
    EXPECT_NEAR(run.weights.at("w").get(0), -1.1, 1e-6) << describe(options);  // -0.3, then the mean of 6…10 is 8
    EXPECT_NEAR(run.steps.at(1).loss, -0.3 * 8, 1e-6) << describe(options);
    if (bits.count() == 0) bits = run.weights.at("w");
    EXPECT_TRUE(run.weights.at("w") == bits) << describe(options);
  }
}

TEST(T10, MeanAndNotSum) {
  const TinyCase tiny(tiny_linear({}, {0}), {{"x", floats({2}, {1, 3})}});
  for (const CompileOptions& options : everywhere(sgd_compile(2, 1, 3, 2))) {
    EXPECT_EQ(gradients(tiny, options).at("w").get(0), 2) << describe(options);
    EXPECT_EQ(train(tiny, options, sgd_run(1, 1)).weights.at("w").get(0), -2) << describe(options);
  }
}

// Gradient [3, 0, …, 0, 4] from two samples [6, 0, …] and [0, …, 8]: norm 5, clipped to 1.
void expect_clipped(int64_t size) {
  std::vector<double> x(2 * size, 0);
  x.front() = 6;
  x.back() = 8;
  const TinyCase tiny(tiny_linear({size}, std::vector<double>(size, 0)), {{"x", floats({2, size}, x)}});
  RunOptions run = sgd_run(1, 1);
  run.clip = 1;
  for (const CompileOptions& options : everywhere(sgd_compile(2, 1, 3, 2))) {
    const TinyRun result = train(tiny, options, run);
    const StepReport& step = result.steps.at(0);
    EXPECT_DOUBLE_EQ(step.grad_norm, 5) << describe(options);
    EXPECT_NEAR(step.clipped_norm, 1, 1e-12) << describe(options);
    EXPECT_NEAR(step.clip_factor, 0.2, 1e-12) << describe(options);
    EXPECT_FALSE(step.skipped);
    const HostTensor& w = result.weights.at("w");
    for (int64_t i = 0; i < size; ++i)
      EXPECT_NEAR(w.get(i), i == 0 ? -0.6 : i == size - 1 ? -0.8 : 0, 1e-7) << describe(options) << " " << i;
  }
}

TEST(T11, ClipsByTheGlobalNorm) { expect_clipped(4); }
TEST(T11, ClipsByTheGlobalNormWhenEveryRankOwnsAPart) { expect_clipped(256); }

TEST(T11, LeavesASmallerNormAlone) {
  const TinyCase tiny(tiny_linear({4}, {0, 0, 0, 0}), {{"x", floats({2, 4}, {3, 0, 0, 4, 3, 0, 0, 4})}});
  RunOptions run = sgd_run(1, 1);
  run.clip = 5.5;
  const TinyRun result = train(tiny, sgd_compile(2, 2), run);
  EXPECT_EQ(result.steps.at(0).clip_factor, 1);
  EXPECT_EQ(result.steps.at(0).clipped_norm, result.steps.at(0).grad_norm);
  EXPECT_THAT(values_of(result.weights.at("w")), ElementsAre(-3, 0, 0, -4));
}

// Two classes with logits [a, 0] and label 1: a token's loss is log(1 + e^a).
constexpr int kTokens = 3;

HostTensor tokens_of_losses_one_and_five() {
  const double one = std::log(std::exp(1.0) - 1), five = std::log(std::exp(5.0) - 1);
  return floats({2, kTokens, 2}, {one, 0, one, 0, one, 0, five, 0, 9, 0, 7, 0});
}

HostTensor labels_with_four_valid() { return HostTensor::of(DType::i64, {2, kTokens}, std::vector<int64_t>{1, 1, 1, 1, -100, -100}); }

void expect_mean_over_tokens(const TinyCase& tiny, CompileOptions options) {
  options.batch = 2;
  options.optimizer = OptimizerKind::sgd;
  options.micro_batches = 1;
  const HostTensor dense = gradients(tiny, options).at("w");
  EXPECT_GT(std::abs(dense.get(0)), 1);
  options.micro_batches = 2;
  for (const CompileOptions& each : everywhere(options)) {
    const TinyRun run = train(tiny, each, sgd_run(0.1, 1));
    EXPECT_NEAR(run.steps.at(0).loss, 2.0, 1e-6) << describe(each);  // mean of means: 3.0
    EXPECT_EQ(run.steps.at(0).weight, 4) << describe(each);
    EXPECT_NEAR(gradients(tiny, each).at("w").get(0), dense.get(0), 1e-6) << describe(each);
  }
}

TEST(T12, TokensCountAlikeWithBuiltInLoss) {
  TinyModel model;
  model.input("x", DType::f32, {"N", kTokens, 2})
      .weight("w", {1}, {1})
      .node("Mul", {"x", "w"}, {"logits"})
      .output("logits", {"N", kTokens, 2});
  const TinyCase tiny(model, {{"x", tokens_of_losses_one_and_five()}, {"labels", labels_with_four_valid()}});
  CompileOptions options;
  options.loss = "softmax_cross_entropy(logits, labels)";
  expect_mean_over_tokens(tiny, options);
}

TEST(T12, TokensCountAlikeWithLossInTheGraph) {
  TinyModel model;
  model.input("x", DType::f32, {"N", kTokens, 2}).input("labels", DType::i64, {"N", kTokens}).weight("w", {1}, {1});
  model.node("Mul", {"x", "w"}, {"scaled"}).node("Transpose", {"scaled"}, {"logits"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  model.node("SoftmaxCrossEntropyLoss", {"logits", "labels"}, {"loss"}, {{"ignore_index", int64_t{-100}}}).loss();
  expect_mean_over_tokens(TinyCase(model, {{"x", tokens_of_losses_one_and_five()}, {"labels", labels_with_four_valid()}}), {});
}

// loss = mean over samples of Σa·xa + Σb·xb + Σc·xc with integer data: the gradient is the mean of the samples, exactly.
TinyModel three_weights() {
  TinyModel model;
  model.ints("axis", {1});
  std::string sum;
  for (const auto& [name, size] : {std::pair{"a", 10}, {"b", 1}, {"c", 7}}) {
    const std::string n = name, w = "p." + n;
    model.input("x" + n, DType::f32, {"N", size}).weight(w, {size}, random_integers(size, 3 + size, 4));
    model.node("Mul", {"x" + n, w}, {"y" + n}).node("ReduceSum", {"y" + n, "axis"}, {"s" + n}, {{"keepdims", int64_t{0}}});
    if (!sum.empty()) model.node("Add", {sum, "s" + n}, {"sum" + n});
    sum = sum.empty() ? "s" + n : "sum" + n;
  }
  model.node("ReduceMean", {sum}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

TEST(T15, SmallWeightsWithPoisonedPadding) {
  constexpr int64_t kSamples = 8;
  std::map<std::string, HostTensor> data;
  for (const auto& [name, size] : {std::pair{"xa", 10}, {"xb", 1}, {"xc", 7}})
    data[name] = floats({kSamples, size}, random_integers(kSamples * size, size, 8));
  const TinyCase tiny(three_weights(), data);
  ExecutorOptions poison;
  poison.poison_padding = true;
  for (const int64_t reduce_bytes : {int64_t{0}, int64_t{16}})
    for (CompileOptions options : everywhere(sgd_compile(kSamples, 1, 3, 8))) {
      options.unit_patterns = {"p\\."};
      options.reduce_bytes = reduce_bytes;
      const Plan plan = tiny.compile(options);
      EXPECT_EQ(plan.units.size(), reduce_bytes == 0 ? 1u : 3u);
      const Weights found = gradients(tiny, options, poison);
      const TinyRun run = train(tiny, options, sgd_run(1, 1), poison);
      EXPECT_TRUE(std::isfinite(run.steps.at(0).grad_norm)) << describe(options);
      for (const auto& [name, size] : {std::pair{"a", 10}, {"b", 1}, {"c", 7}})
        for (int64_t i = 0; i < size; ++i) {
          double mean = 0;
          for (int64_t s = 0; s < kSamples; ++s) mean += data[fmt::format("x{}", name)].get(s * size + i) / kSamples;
          const std::string parameter = fmt::format("p.{}", name);
          EXPECT_EQ(found.at(parameter).get(i), mean) << describe(options) << " " << parameter << " " << i;
          EXPECT_EQ(run.weights.at(parameter).get(i), random_integers(size, 3 + size, 4)[i] - mean)
              << describe(options) << " " << parameter << " " << i;
        }
    }
}

TEST(T16, ScalarParameters) {
  const TinyCase scalar(tiny_linear({}, {5}), {{"x", floats({4}, {3, 3, 3, 3})}});
  const TinyCase vector(tiny_linear({1}, {5}), {{"x", floats({4, 1}, {3, 3, 3, 3})}});
  for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 4)))
    for (const TinyCase* tiny : {&scalar, &vector}) {
      const HostTensor gradient = gradients(*tiny, options).at("w");
      EXPECT_EQ(gradient.shape(), tiny == &scalar ? Shape{} : Shape{1});
      EXPECT_EQ(gradient.get(0), 3) << describe(options);
      EXPECT_EQ(train(*tiny, options, sgd_run(1, 1)).weights.at("w").get(0), 2) << describe(options);
    }
}

// y = x[N,3] + b[1,3], loss = mean over all: the gradient of b is 1/3 in each place, whatever N.
TEST(T30, BroadcastBias) {
  for (const int64_t samples : {1, 2, 5}) {
    TinyModel model;
    model.input("x", DType::f32, {"N", 3}).weight("b", {1, 3}, {1, 2, 3}).node("Add", {"x", "b"}, {"y"});
    model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
    const TinyCase tiny(model, {{"x", random_tensor({samples, 3}, 1)}});
    for (const int64_t micro_batches : {int64_t{1}, samples})
      for (const CompileOptions& options : everywhere(sgd_compile(samples, 1, 3, micro_batches), {1, 2})) {
        const HostTensor gradient = gradients(tiny, options).at("b");
        EXPECT_EQ(gradient.shape(), (Shape{1, 3}));
        EXPECT_THAT(values_of(gradient), Pointwise(DoubleNear(1e-7), {1 / 3.0, 1 / 3.0, 1 / 3.0})) << describe(options);
      }
  }
}

}  // namespace
}  // namespace zeroplan
