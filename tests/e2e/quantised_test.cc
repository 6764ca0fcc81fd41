// Quantised and half models trained on ranks: the step is that of what they stand for, through the rounding.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr double kScale = 0.25, kRate = 0.5;

HostTensor int8s(const Shape& shape, const std::vector<int>& values) { return HostTensor::of(DType::i8, shape, values); }

// x[N,2] · DequantizeLinear(q[2,2], 0.25, 3) + bias → loss = mean of the squares, all of them exact in single precision.
TinyCase quantised_case() {
  TinyModel model;
  model.input("x", DType::f32, {"N", 2}).initializer("q", int8s({2, 2}, {5, -1, 7, 3})).initializer("zero", int8s({}, {3}));
  model.initializer("scale", HostTensor::of<double>(DType::f32, {}, {kScale})).weight("bias", {2}, {0.5, -1});
  model.node("DequantizeLinear", {"q", "scale", "zero"}, {"w"}).node("MatMul", {"x", "w"}, {"xw"}).node("Add", {"xw", "bias"}, {"y"});
  model.node("Mul", {"y", "y"}, {"square"}).node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"x", floats({4, 2}, {1, 2, 0, 1, -1, 0.5, 2, 0})}});
}

// A step of plain gradient descent on w by hand, gradients taken at the rounded weights.
TEST(Quantised, AStepIsThatOfTheRoundedWeights) {
  const TinyCase tiny = quantised_case();
  const std::vector<double> x = {1, 2, 0, 1, -1, 0.5, 2, 0};
  std::vector<double> master, bias = {0.5, -1};
  for (const int q : {5, -1, 7, 3}) master.push_back((q - 3) * kScale);
  for (int step = 0; step < 3; ++step) {
    std::vector<double> w(4), dw(4, 0), db(2, 0);
    for (int i = 0; i < 4; ++i) w[i] = std::clamp(std::nearbyint(master[i] / kScale) + 3, -128.0, 127.0) * kScale - 3 * kScale;
    for (int n = 0; n < 4; ++n)
      for (int j = 0; j < 2; ++j) {
        const double y = x[2 * n] * w[j] + x[2 * n + 1] * w[2 + j] + bias[j], dy = 2 * y / 8;
        for (int i = 0; i < 2; ++i) dw[2 * i + j] += dy * x[2 * n + i];
        db[j] += dy;
      }
    for (int i = 0; i < 4; ++i) master[i] -= kRate * dw[i];
    for (int j = 0; j < 2; ++j) bias[j] -= kRate * db[j];
  }
  for (const CompileOptions& options : everywhere(sgd_compile(4))) {
    const Weights weights = train(tiny, options, sgd_run(kRate, 3)).weights;
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(weights.at("q").get(i), master[i], 1e-6) << describe(options);
    for (int j = 0; j < 2; ++j) EXPECT_NEAR(weights.at("bias").get(j), bias[j], 1e-6) << describe(options);
  }
}

TEST(Quantised, TheExportedIntegersComputeTheSameLoss) {
  const TinyCase tiny = quantised_case();
  for (const CompileOptions& options : everywhere(sgd_compile(4))) {
    const Plan plan = tiny.compile(options);
    const auto executor = make_executor(plan);
    const auto data = tiny.data(plan);
    run_training(*executor, *data, nullptr, sgd_run(kRate, 3), [](const RunEvent&) {});
    export_trained(*executor, tiny.file("trained.onnx"));
    const Plan again = compile(tiny.file("trained.onnx"), options);
    const auto reopened = make_executor(again);
    const RunScalars scalars = scalars_of_step(3, kRate);
    EXPECT_EQ(reopened->train_step(*data, 0, nullptr, scalars).loss, executor->train_step(*data, 0, nullptr, scalars).loss)
        << describe(options);
  }
}

TEST(Quantised, ThePlanKeepsWhereScalesLie) {
  const TinyCase tiny = quantised_case();
  const Plan plan = tiny.compile(sgd_compile(4, 2));
  const Plan again = parse_plan(serialize_plan(plan), "plan");
  const Parameter& p = again.parameters[parameter_index(again, "q")].parameter;
  ASSERT_TRUE(p.source.quantization.has_value());
  EXPECT_EQ(p.source.type, StoredType::i8);
  EXPECT_EQ(p.source.quantization->scale.initializer, "scale");
  EXPECT_EQ(p.source.quantization->zero_point.bytes, 1);
  EXPECT_TRUE(all_weights(*make_executor(again)) == all_weights(*make_executor(plan)));
}

}  // namespace
}  // namespace zeroplan
