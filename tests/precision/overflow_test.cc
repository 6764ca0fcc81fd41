// float16 with its loss scale: what overflows is skipped by all ranks, the scale follows.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/report.h"
#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double kStill = 1e-30;  // a learning rate that moves nothing

CompileOptions half(CompileOptions options) {
  options.precision = DType::f16;
  return options;
}

// Targets of which those of sample `bad` give errors that times the scale are beyond float16.
TinyCase one_bad_sample(int64_t samples, int64_t bad) {
  HostTensor t = random_tensor({samples, 4}, 2);
  for (int64_t i = 0; i < 4 && bad >= 0; ++i) t.set(bad * 4 + i, 3e4);
  return TinyCase(tiny_mlp(2, 4), {{"x", random_tensor({samples, 4}, 1)}, {"t", t}});
}

TEST(LossScale, AnOverflowOfOneRankIsSkippedByAll) {
  const TinyCase tiny = one_bad_sample(8, 3), clean = one_bad_sample(8, -1);
  const TinyRun start = train(clean, sgd_compile(4, 1, 3, 4), sgd_run(kStill, 1));
  for (const CompileOptions& options : everywhere(half(sgd_compile(4, 1, 3, 4)))) {
    const TinyRun one = train(tiny, options, sgd_run(0.1, 1));
    const StepReport& step = one.steps.at(0);
    EXPECT_TRUE(step.skipped) << describe(options);
    EXPECT_TRUE(std::isfinite(step.loss)) << describe(options);
    EXPECT_THAT(step.overflow, StartsWith("layers.1.")) << describe(options);  // backward comes to the last layer first
    for (const auto& [name, weights] : start.weights) EXPECT_TRUE(one.weights.at(name) == weights) << describe(options) << name;
    const TinyRun two = train(tiny, options, sgd_run(0.1, 2));
    EXPECT_FALSE(two.steps.at(1).skipped) << describe(options);
    EXPECT_EQ(two.steps.at(1).loss_scale, step.loss_scale / 2) << describe(options);
    EXPECT_FALSE(two.weights.at("layers.0.weight") == start.weights.at("layers.0.weight")) << describe(options);
  }
}

// A skipped step is no step of the optimizer: what follows is as if its batch had not been there.
TEST(LossScale, SkippedStepsDoNotCount) {
  HostTensor x = random_tensor({8, 4}, 1), t = random_tensor({8, 4}, 2), later_x(DType::f32, {4, 4}), later_t(DType::f32, {4, 4});
  for (int64_t i = 0; i < 16; ++i) later_x.set(i, x.get(16 + i)), later_t.set(i, t.get(16 + i));
  for (int64_t i = 0; i < 4; ++i) t.set(i, 3e4);
  const TinyCase both(tiny_mlp(2, 4), {{"x", x}, {"t", t}}), later(tiny_mlp(2, 4), {{"x", later_x}, {"t", later_t}});
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    CompileOptions options = half(sgd_compile(4, 2));
    options.optimizer = optimizer;
    options.momentum = optimizer == OptimizerKind::sgd ? 0.9 : 0;
    const TinyRun skipped = train(both, options, sgd_run(0.1, 2)), plain = train(later, options, sgd_run(0.1, 1));
    ASSERT_TRUE(skipped.steps.at(0).skipped);
    for (const auto& [name, weights] : plain.weights)
      for (int64_t i = 0; i < weights.count(); ++i) EXPECT_NEAR(skipped.weights.at(name).get(i), weights.get(i), 1e-6) << name;
  }
}

// Without the scale these gradients would be zero in float16; the weights move as in float32.
TEST(LossScale, SmallGradientsSurvive) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 2}).weight("w0", {2, 2}, {1, 0, 0, 1}).weight("w1", {2, 1}, {0x1p-14, 0x1p-14});
  model.constant("c", HostTensor::of<double>(DType::f32, {}, {0x1p-12}));
  model.node("MatMul", {"x", "w0"}, {"h"}).node("MatMul", {"h", "w1"}, {"y"}).node("Mul", {"y", "c"}, {"z"});
  model.node("ReduceMean", {"z"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"x", floats({2, 2}, {1, 2, 3, 4})}});
  const Weights want = gradients(tiny, sgd_compile(2)), got = gradients(tiny, half(sgd_compile(2)));
  EXPECT_GT(want.at("w0").get(0), 0);
  EXPECT_LT(want.at("w0").get(0), 0x1p-24);
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(got.at("w0").get(i), want.at("w0").get(i), 0x1p-10 * want.at("w0").get(i));
}

// What no scale mends is an error, with the parameter named.
TEST(LossScale, ALossThatIsNotFiniteIsAnError) {
  HostTensor x = random_tensor({4, 4}, 1);
  x.set(0, 6e4);
  TinyModel model;
  model.input("x", DType::f32, {"N", 4}).weight("w0", {4, 4}, std::vector<double>(16, 3)).weight("w1", {4, 1}, {1, 1, 1, 1});
  model.node("MatMul", {"x", "w0"}, {"h"}).node("MatMul", {"h", "w1"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"x", x}});
  EXPECT_THAT(error_of([&] { train(tiny, half(sgd_compile(4)), sgd_run(0.1, 1)); }), HasSubstr("is not finite"));
}

// Gradients are sums over samples, and nothing scales what goes over the wire where the model computes in float32.
TEST(ReduceDtype, SumsBeyondFloat16AreNamed) {
  CompileOptions options = sgd_compile(4, 1);
  options.reduce_dtype = DType::f16;
  HostTensor t = random_tensor({8, 4}, 2);
  for (int64_t i = 0; i < t.count(); ++i) t.set(i, 1e6);
  const TinyCase large(tiny_mlp(2, 4), {{"x", random_tensor({8, 4}, 1)}, {"t", t}});
  EXPECT_THAT(error_of([&] { train(large, options, sgd_run(0.1, 1)); }), HasSubstr("--reduce-dtype bf16 or fp32"));
}

}  // namespace
}  // namespace zeroplan
