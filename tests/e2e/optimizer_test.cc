// Optimizers on a linear regression against a plain loop in double.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

constexpr int64_t kSamples = 12, kFeatures = 3, kBatch = 4, kSteps = 6;

// x[N,3]·w[3,1] + b[1] → loss = mean((y − t)²)
TinyModel regression() {
  TinyModel model;
  model.input("x", DType::f32, {"N", kFeatures}).input("t", DType::f32, {"N", 1});
  model.weight("w", {kFeatures, 1}, random_values(kFeatures, 1)).weight("b", {1}, {0.25});
  model.node("MatMul", {"x", "w"}, {"product"})
      .node("Add", {"product", "b"}, {"y"})
      .node("Sub", {"y", "t"}, {"d"})
      .node("Mul", {"d", "d"}, {"square"});
  model.node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

struct Dense {
  std::vector<double> w, m, v;  // three weights, then the bias
  std::vector<double> losses;
};

// PyTorch's formulas for AdamW, Adam (decay added to the gradient) and SGD.
void update(Dense& dense, const std::vector<double>& gradient, OptimizerKind kind, double momentum, const RunOptions& run, int t) {
  for (size_t i = 0; i < dense.w.size(); ++i) {
    double g = gradient[i], &w = dense.w[i], &m = dense.m[i], &v = dense.v[i];
    if (kind == OptimizerKind::adamw)
      w *= 1 - run.lr * run.weight_decay;
    else
      g += run.weight_decay * w;
    if (kind == OptimizerKind::sgd) {
      m = t == 1 ? g : momentum * m + g;
      w -= run.lr * (momentum == 0 ? g : m);
      continue;
    }
    m = run.beta1 * m + (1 - run.beta1) * g;
    v = run.beta2 * v + (1 - run.beta2) * g * g;
    w -= run.lr / (1 - std::pow(run.beta1, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(run.beta2, t)) + run.eps);
  }
}

Dense dense_run(const HostTensor& x, const HostTensor& target, OptimizerKind kind, double momentum, const RunOptions& run) {
  Dense dense{values_of(floats({kFeatures}, random_values(kFeatures, 1))),
              std::vector<double>(kFeatures + 1),
              std::vector<double>(kFeatures + 1),
              {}};
  dense.w.push_back(0.25);
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<double> gradient(kFeatures + 1);
    double loss = 0;
    for (int64_t i = 0; i < kBatch; ++i) {
      const int64_t sample = (step * kBatch + i) % kSamples;
      double d = dense.w[kFeatures] - target.get(sample);
      for (int64_t f = 0; f < kFeatures; ++f) d += x.get(sample * kFeatures + f) * dense.w[f];
      loss += d * d / kBatch;
      for (int64_t f = 0; f < kFeatures; ++f) gradient[f] += 2 * d * x.get(sample * kFeatures + f) / kBatch;
      gradient[kFeatures] += 2 * d / kBatch;
    }
    dense.losses.push_back(loss);
    update(dense, gradient, kind, momentum, run, static_cast<int>(step) + 1);
  }
  return dense;
}

void expect_dense(OptimizerKind kind, double momentum, DType precision) {
  const HostTensor x = random_tensor({kSamples, kFeatures}, 5), t = random_tensor({kSamples, 1}, 6);
  const TinyCase tiny(regression(), {{"x", x}, {"t", t}});
  RunOptions run = sgd_run(0.05, kSteps);
  run.weight_decay = 0.1;
  const Dense dense = dense_run(x, t, kind, momentum, run);
  const double tolerance = precision == DType::f64 ? 1e-13 : 2e-6;
  CompileOptions options = sgd_compile(kBatch, 1, 3, 4);
  options.optimizer = kind;
  options.momentum = momentum;
  options.precision = precision;
  for (const CompileOptions& each : everywhere(options)) {
    const TinyRun result = train(tiny, each, run);
    for (int64_t s = 0; s < kSteps; ++s) EXPECT_NEAR(result.losses().at(s), dense.losses[s], tolerance) << describe(each) << " step " << s;
    for (int64_t f = 0; f < kFeatures; ++f) EXPECT_NEAR(result.weights.at("w").get(f), dense.w[f], tolerance) << describe(each);
    EXPECT_NEAR(result.weights.at("b").get(0), dense.w[kFeatures], tolerance) << describe(each);
  }
}

TEST(Optimizers, AdamWEqualsThePlainLoop) {
  expect_dense(OptimizerKind::adamw, 0, DType::f64);
  expect_dense(OptimizerKind::adamw, 0, DType::f32);
}

TEST(Optimizers, AdamEqualsThePlainLoop) {
  expect_dense(OptimizerKind::adam, 0, DType::f64);
  expect_dense(OptimizerKind::adam, 0, DType::f32);
}

TEST(Optimizers, SgdEqualsThePlainLoop) {
  expect_dense(OptimizerKind::sgd, 0, DType::f64);
  expect_dense(OptimizerKind::sgd, 0, DType::f32);
}

TEST(Optimizers, SgdWithMomentumEqualsThePlainLoop) {
  expect_dense(OptimizerKind::sgd, 0.9, DType::f64);
  expect_dense(OptimizerKind::sgd, 0.9, DType::f32);
}

// No decay on b: after one step of AdamW with gradient zero nothing else moves it.
TEST(Optimizers, NoDecayPattern) {
  const TinyCase tiny(tiny_linear({2}, {1, -2}), {{"x", floats({1, 2}, {0, 0})}});
  CompileOptions options;
  options.batch = 1;
  RunOptions run = sgd_run(0.5, 1);
  run.weight_decay = 0.5;
  EXPECT_EQ(values_of(train(tiny, options, run).weights.at("w")), (std::vector<double>{0.75, -1.5}));
  run.no_decay = {"w"};
  EXPECT_EQ(values_of(train(tiny, options, run).weights.at("w")), (std::vector<double>{1, -2}));
}

}  // namespace
}  // namespace zeroplan
