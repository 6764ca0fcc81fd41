// What a loss may look like, and that cutting the batch does not change the result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

HostTensor scalar(double value) { return floats({}, {value}); }

// w·x over samples 1…8 (or their negatives), reduced by `reduce`, then multiplied by `factor` where it is not 1.
TinyCase reduced(const char* reduce, double factor) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {0}).node("Mul", {"w", "x"}, {"y"});
  model.node(reduce, {"y"}, {factor == 1 ? "loss" : "reduced"}, {{"keepdims", int64_t{0}}});
  if (factor != 1) model.constant("factor", scalar(factor)).node("Mul", {"reduced", "factor"}, {"loss"});
  model.loss();
  return TinyCase(model, {{"x", floats({8}, {1, 2, 3, 4, 5, 6, 7, 8})}});
}

TEST(Loss, FinalSumStaysASum) {
  const TinyCase tiny = reduced("ReduceSum", 1);
  for (const int64_t micro_batches : {1, 2, 8})
    for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, micro_batches), {1, 2}))
      EXPECT_EQ(train(tiny, options, sgd_run(0.5, 1)).weights.at("w").get(0), -18) << describe(options);
}

TEST(Loss, ScaledMean) {
  const TinyCase tiny = reduced("ReduceMean", 4);
  for (const int64_t micro_batches : {1, 2, 8})
    for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, micro_batches), {1, 2})) {
      const TinyRun run = train(tiny, options, sgd_run(0.5, 2));
      EXPECT_EQ(run.weights.at("w").get(0), -18) << describe(options);  // 4 · 4.5 · 0.5 per step, twice
      EXPECT_EQ(run.losses().at(1), -9 * 4 * 4.5) << describe(options);
    }
}

TEST(Loss, NegatedMean) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {0}).node("Mul", {"w", "x"}, {"y"});
  model.node("ReduceMean", {"y"}, {"mean"}, {{"keepdims", int64_t{0}}}).node("Neg", {"mean"}, {"loss"}).loss();
  const TinyCase tiny(model, {{"x", floats({4}, {1, 2, 3, 6})}});
  for (const int64_t micro_batches : {1, 4})
    EXPECT_EQ(train(tiny, sgd_compile(4, 1, 3, micro_batches), sgd_run(1, 1)).weights.at("w").get(0), 3);
}

TEST(Loss, MicroBatchesEqualTheDenseRun) {
  constexpr int64_t kWidth = 8;
  const TinyCase tiny(tiny_mlp(3, kWidth), {{"x", random_tensor({16, kWidth}, 1)}, {"t", random_tensor({16, kWidth}, 2)}});
  const TinyRun dense = train(tiny, sgd_compile(8, 1, 0, 1), sgd_run(0.1, 4));
  EXPECT_LT(dense.losses().at(2), dense.losses().at(0));  // the same samples again
  for (const int64_t micro_batches : {1, 2, 4, 8})
    for (const CompileOptions& options : everywhere(sgd_compile(8, 1, 3, micro_batches))) {
      const TinyRun run = train(tiny, options, sgd_run(0.1, 4));
      for (size_t i = 0; i < run.steps.size(); ++i)
        EXPECT_NEAR(run.losses()[i], dense.losses()[i], 1e-6) << describe(options) << " step " << i;
      for (const auto& [name, weights] : dense.weights)
        for (int64_t i = 0; i < weights.count(); ++i)
          EXPECT_NEAR(run.weights.at(name).get(i), weights.get(i), 1e-6) << describe(options) << " " << name;
    }
}

// The root of a mean is neither a mean nor a sum over samples.
TEST(Loss, OtherThanMeanOrSumNeedsOneMicroBatch) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {2}).node("Mul", {"w", "x"}, {"y"}).node("Mul", {"y", "y"}, {"square"});
  model.node("ReduceMean", {"square"}, {"mean"}, {{"keepdims", int64_t{0}}}).node("Sqrt", {"mean"}, {"loss"}).loss();
  const TinyCase tiny(model, {{"x", floats({2}, {3, 4})}});
  const std::string message = error_of([&] { tiny.compile(sgd_compile(2, 1, 3, 2)); });
  EXPECT_THAT(message, HasSubstr("node_loss"));
  EXPECT_THAT(message, HasSubstr("micro-batch"));
  // loss = |w| · sqrt(12.5), so the gradient is sqrt(12.5)
  EXPECT_NEAR(train(tiny, sgd_compile(2, 1, 3, 1), sgd_run(1, 1)).weights.at("w").get(0), 2 - 3.5355339, 1e-6);
}

// Samples are folded before the last reduction: the sum of the means over samples is a mean over samples, so it cannot be added up.
TEST(Loss, SumOfMeansIsNotTakenForASum) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 4}).weight("w", {4}, {1, 1, 1, 1}).node("Mul", {"x", "w"}, {"y"}).ints("axis", {0});
  model.node("ReduceMean", {"y", "axis"}, {"means"}, {{"keepdims", int64_t{0}}})
      .node("ReduceSum", {"means"}, {"loss"}, {{"keepdims", int64_t{0}}})
      .loss();
  const TinyCase tiny(model, {{"x", floats({4, 4}, std::vector<double>(16, 2))}});
  for (const int64_t micro_batches : {2, 4})
    EXPECT_THAT(error_of([&] { train(tiny, sgd_compile(4, 1, 3, micro_batches), sgd_run(1, 1)); }), HasSubstr("node_loss"))
        << micro_batches;
  EXPECT_EQ(values_of(train(tiny, sgd_compile(4, 1, 3, 1), sgd_run(1, 1)).weights.at("w")), (std::vector<double>{-1, -1, -1, -1}));
}

// The same number of samples in each micro-batch, one or more: a sum over features and a mean over samples, in either order of writing.
TEST(Loss, MeanOverSamplesOfASumWithKeptAxes) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 4}).weight("w", {4}, {0, 0, 0, 0}).node("Mul", {"x", "w"}, {"y"}).ints("axis", {1});
  model.node("ReduceSum", {"y", "axis"}, {"sums"}, {{"keepdims", int64_t{1}}})
      .node("ReduceMean", {"sums"}, {"loss"}, {{"keepdims", int64_t{0}}})
      .loss();
  const TinyCase tiny(model, {{"x", floats({4, 4}, {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8})}});
  for (const int64_t micro_batches : {1, 2, 4})
    EXPECT_EQ(values_of(gradients(tiny, sgd_compile(4, 1, 3, micro_batches)).at("w")), (std::vector<double>{2, 3, 4, 5})) << micro_batches;
}

TEST(Loss, OutputsAreNamedWhenNoneIsTheLoss) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 2}).weight("w", {2}, {1, 2}).node("Mul", {"x", "w"}, {"scores"}).output("scores", {"N", 2});
  const TinyCase tiny(model);
  const std::string message = error_of([&] { tiny.compile(sgd_compile(2)); });
  EXPECT_THAT(message, HasSubstr("scores"));
  EXPECT_THAT(message, HasSubstr("--loss"));
  CompileOptions unknown = sgd_compile(2);
  unknown.loss = "mse(scroes, target)";
  EXPECT_THAT(error_of([&] { tiny.compile(unknown); }), HasSubstr("scroes"));
}

TEST(Loss, MeanSquaredErrorOfAnOutput) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 2}).weight("w", {2}, {1, 2}).node("Mul", {"x", "w"}, {"scores"}).output("scores", {"N", 2});
  const TinyCase tiny(model, {{"x", floats({2, 2}, {1, 1, 2, 2})}, {"target", floats({2, 2}, {0, 0, 0, 0})}});
  CompileOptions options = sgd_compile(2, 2);
  options.loss = "mse(scores, target)";
  const TinyRun run = train(tiny, options, sgd_run(1, 1));
  EXPECT_EQ(run.losses().at(0), (1 + 4 + 4 + 16) / 4.0);
  // d/dw_j = mean over 4 of 2·w_j·x² summed over samples: w · (1 + 4) · 2 / 4
  EXPECT_EQ(values_of(run.weights.at("w")), (std::vector<double>{1 - 2.5, 2 - 5.0}));
}

}  // namespace
}  // namespace zeroplan
