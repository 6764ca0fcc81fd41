// T17: what dropout drops in the forward it drops in the backward; masks are a function of seed, step, micro-batch and node alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

constexpr int64_t kWidth = 1024;

// loss = sum over samples of dropout(x·w)·c, so that the gradient of w is what the backward lets through, and x and w are ones.
TinyModel dropped(double ratio, int layers = 1) {
  TinyModel model;
  model.input("x", DType::f32, {"N", kWidth}).weight("w", {kWidth}, std::vector<double>(kWidth, 1)).node("Mul", {"x", "w"}, {"h0"});
  model.constant("ratio", floats({}, {ratio})).constant("training", HostTensor::of<int64_t>(DType::boolean, {}, {1}));
  for (int i = 0; i < layers; ++i) model.node("Dropout", {"h" + std::to_string(i), "ratio", "training"}, {"h" + std::to_string(i + 1)});
  model.node("ReduceSum", {"h" + std::to_string(layers)}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

TinyCase ones(const TinyModel& model, int64_t samples) {
  return TinyCase(model, {{"x", floats({samples, kWidth}, std::vector<double>(samples * kWidth, 1))}});
}

// The gradient of one step for each micro-batch, as if it were alone: the others read zeros.
std::vector<double> gradient_of(const TinyModel& model, int ranks, int64_t micro_batches, int64_t which, uint64_t seed = 0,
                                int64_t step = 0) {
  std::vector<double> x(micro_batches * kWidth, 0);
  std::fill_n(x.begin() + which * kWidth, kWidth, 1.0);
  const TinyCase tiny(model, {{"x", floats({micro_batches, kWidth}, x)}});
  const Plan plan = tiny.compile(sgd_compile(micro_batches, ranks, 3, micro_batches));
  const auto executor = make_executor(plan);
  RunScalars scalars = scalars_of_step(step, 0.1);
  scalars.seed = seed;
  executor->accumulate(*tiny.data(plan), 0, nullptr, scalars);
  return values_of(executor->gradient(0));
}

int64_t agreeing(const std::vector<double>& a, const std::vector<double>& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += (a[i] == 0) == (b[i] == 0);
  return count;
}

TEST(T17, TheBackwardDropsWhatTheForwardDropped) {
  // loss = Σ w·mask/(1 - ratio): with w = 1, its value is the sum of the gradient.
  const TinyCase tiny = ones(dropped(0.5), 1);
  const Plan plan = tiny.compile(sgd_compile(1));
  const auto executor = make_executor(plan);
  for (int64_t step = 0; step < 3; ++step) {
    const StepReport report = executor->accumulate(*tiny.data(plan), 0, nullptr, scalars_of_step(step, 0.1));
    double sum = 0;
    for (const double g : values_of(executor->gradient(0))) {
      EXPECT_TRUE(g == 0 || g == 2);
      sum += g;
    }
    EXPECT_EQ(report.loss, sum);
    EXPECT_NEAR(sum, kWidth, 0.2 * kWidth);
  }
}

// Forward zeros themselves: y² instead of y, so that the gradient is 2·y·mask/(1 - ratio), zero exactly where y is.
TEST(T17, ZerosStandAtTheSamePlaces) {
  TinyModel model;
  model.input("x", DType::f32, {"N", kWidth}).weight("w", {kWidth}, random_values(kWidth, 3));
  model.constant("ratio", floats({}, {0.5})).constant("training", HostTensor::of<int64_t>(DType::boolean, {}, {1}));
  model.node("Mul", {"x", "w"}, {"h"}).node("Dropout", {"h", "ratio", "training"}, {"y", "mask"}).node("Mul", {"y", "y"}, {"square"});
  model.node("Cast", {"mask"}, {"kept"}, {{"to", int64_t{1}}}).node("Mul", {"square", "kept"}, {"kept_square"});
  model.node("ReduceSum", {"kept_square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny = ones(model, 2);
  const Weights gradient = gradients(tiny, sgd_compile(1));
  const std::vector<double> w = random_values(kWidth, 3);
  int64_t zeros = 0;
  for (int64_t i = 0; i < kWidth; ++i) {
    const double g = gradient.at("w").get(i);
    zeros += g == 0;
    EXPECT_TRUE(g == 0 || std::abs(g - 8 * w[i]) < 1e-5) << i;
  }
  EXPECT_NEAR(static_cast<double>(zeros), kWidth / 2.0, 0.1 * kWidth);
}

TEST(T17, MicroBatchesHaveMasksOfTheirOwn) {
  const TinyModel model = dropped(0.5);
  const auto first = gradient_of(model, 2, 2, 0), second = gradient_of(model, 2, 2, 1);
  EXPECT_GT(agreeing(first, second), 0.4 * kWidth);
  EXPECT_LT(agreeing(first, second), 0.6 * kWidth);
}

TEST(T17, AMicroBatchHasOneMaskAtAnyNumberOfRanks) {
  const TinyModel model = dropped(0.5);
  for (const int64_t which : {0, 3}) {
    const auto expected = gradient_of(model, 1, 4, which);
    for (const int ranks : {2, 4}) EXPECT_EQ(gradient_of(model, ranks, 4, which), expected) << ranks;
  }
}

TEST(T17, SeedStepAndNodeChangeTheMask) {
  const TinyModel model = dropped(0.5);
  const auto base = gradient_of(model, 1, 1, 0);
  EXPECT_EQ(gradient_of(model, 1, 1, 0), base);
  for (const auto& other : {gradient_of(model, 1, 1, 0, 1), gradient_of(model, 1, 1, 0, 0, 1)}) {
    EXPECT_GT(agreeing(base, other), 0.4 * kWidth);
    EXPECT_LT(agreeing(base, other), 0.6 * kWidth);
  }
  // Two nodes: a quarter of the elements passes both.
  const auto both = gradient_of(dropped(0.5, 2), 1, 1, 0);
  EXPECT_NEAR(static_cast<double>(std::count(both.begin(), both.end(), 4.0)), kWidth / 4.0, 0.1 * kWidth);
}

TEST(T17, SameBitsEverywhere) {
  const TinyCase tiny = ones(dropped(0.3, 2), 8);
  const TinyRun expected = train(tiny, sgd_compile(8, 1, 0, 4), sgd_run(0.01, 3));
  for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, 4)))
    EXPECT_TRUE(train(tiny, options, sgd_run(0.01, 3)).weights == expected.weights) << describe(options);
}

TEST(T17, EvaluationDropsNothing) {
  const TinyCase tiny = ones(dropped(0.5), 4);
  CompileOptions options = sgd_compile(2);
  options.eval = true;
  const Plan plan = tiny.compile(options);
  const auto executor = make_executor(plan);
  EXPECT_EQ(executor->evaluate(*tiny.data(plan)).loss, 4 * kWidth);
}

// Noise of a layer: equal bits at any number of ranks, other numbers in each step and micro-batch.
TEST(RandomNumbers, NoiseIsTheSameEverywhere) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 64}).weight("w", {64}, std::vector<double>(64, 1)).node("Mul", {"x", "w"}, {"h"});
  model.node("RandomNormalLike", {"h"}, {"noise"}, {{"scale", 0.5}}).node("Mul", {"h", "noise"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"x", random_tensor({8, 64}, 5)}});
  const TinyRun expected = train(tiny, sgd_compile(8, 1, 0, 4), sgd_run(0.1, 3));
  EXPECT_NE(expected.losses()[0], expected.losses()[1]);
  for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, 4))) {
    const TinyRun run = train(tiny, options, sgd_run(0.1, 3));
    EXPECT_EQ(run.losses(), expected.losses()) << describe(options);
    EXPECT_TRUE(run.weights == expected.weights) << describe(options);
  }
}

}  // namespace
}  // namespace zeroplan
