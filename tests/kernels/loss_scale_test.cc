// The training step in 16 bits: masters, and the loss scale that an overflow lowers.
#include <cmath>

#include <gtest/gtest.h>

#include "runtime/plan/report.h"
#include "tests/kernels/step_call.h"

namespace zeroplan {
namespace {

template <typename T>
TensorView view_of(std::vector<T>& x, DType dtype) {
  return make_view(x.data(), dtype, {static_cast<int64_t>(x.size())});
}

void call(const TestDevice& device, OpKind op, std::vector<TensorView> in, std::vector<TensorView> out, const Attributes& attributes,
          const RunScalars& scalars = {}, const UnitArgs& unit = {}) {
  StepCall{std::move(in), std::move(out), attributes, scalars, unit}.run(device, op);
}

// The master moves as weights of float32 do, to the bit; the weights are its rounding, padding and skipped steps aside.
class Master : public testing::TestWithParam<TestDevice> {};
INSTANTIATE_TEST_SUITE_P(All, Master, testing::ValuesIn(test_devices()), testing::PrintToStringParamName());

TEST_P(Master, IsUpdatedAndRounded) {
  const UnitExtent extents[] = {{0, 50, 1}, {64, 64, 0}};
  const UnitArgs unit{extents, 2, 128, 0, 128};
  for (const char* optimizer : {"adamw", "adam", "sgd", "sgd_momentum"})
    for (const bool skip : {false, true}) {
      const bool sgd = optimizer[0] == 's', plain = std::string(optimizer) == "sgd";
      std::vector<float> weights(128), master(128), gradient(128), g(128), m(128), v(128), m2(128), v2(128);
      std::vector<BFloat16> rounded(128, BFloat16(7.0f));
      std::vector<double> report(kReportFields, 0);
      report[kReportWeight] = 4, report[kReportFactor] = 0.5, report[kReportSkip] = skip;
      for (int i = 0; i < 128; ++i)
        weights[i] = master[i] = std::sin(1.0f + static_cast<float>(i)), gradient[i] = g[i] = std::cos(0.3f * static_cast<float>(i));
      RunScalars scalars;
      scalars.step = 1;
      scalars.momentum = plain ? 0 : 0.9;
      std::vector<TensorView> moments = {view_of(m, DType::f32), view_of(v, DType::f32)},
                              moments2 = {view_of(m2, DType::f32), view_of(v2, DType::f32)};
      moments.resize(plain ? 0 : sgd ? 1 : 2), moments2.resize(moments.size());
      std::vector<TensorView> in = {view_of(weights, DType::f32), view_of(gradient, DType::f32), view_of(report, DType::f64)},
                              out = {in[0]};
      std::vector<TensorView> half_in = {view_of(rounded, DType::bf16), view_of(g, DType::f32), in[2], view_of(master, DType::f32)},
                              half_out = {half_in[0], half_in[3]};
      in.insert(in.end(), moments.begin(), moments.end()), out.insert(out.end(), moments.begin(), moments.end());
      half_in.insert(half_in.end(), moments2.begin(), moments2.end()), half_out.insert(half_out.end(), moments2.begin(), moments2.end());
      out.push_back(in[1]), half_out.push_back(half_in[1]);
      const Attributes attributes = {{Attr::optimizer, std::string(sgd ? "sgd" : optimizer)}};
      call(GetParam(), OpKind::optimizer_update, in, out, attributes, scalars, unit);
      call(GetParam(), OpKind::optimizer_update, half_in, half_out, attributes, scalars, unit);
      EXPECT_EQ(master, weights) << optimizer;
      EXPECT_EQ(m2, m) << optimizer;
      EXPECT_EQ(v2, v) << optimizer;
      EXPECT_EQ(g, gradient) << optimizer;
      for (int i = 0; i < 128; ++i) {
        const bool padding = i >= 50 && i < 64;
        EXPECT_EQ(rounded[i].bits, skip || padding ? BFloat16(7.0f).bits : BFloat16(master[i]).bits) << optimizer << " " << i;
      }
    }
}

// Two parameters in one unit, numbers 3 and 1 of five; a report as fold_metrics leaves it.
class LossScale : public testing::TestWithParam<TestDevice> {
 protected:
  void fold(double loss, double weight) {
    std::vector<double> metrics = {loss, weight, 0, 0};
    call(GetParam(), OpKind::fold_metrics, {view_of(metrics, DType::f64), view_of(report, DType::f64), make_view(&scale, DType::f32, {})},
         {view_of(report, DType::f64), view_of(metrics, DType::f64)}, {{Attr::value, int64_t{1}}});
  }
  void norm(std::vector<float> gradient) {
    const UnitExtent extents[] = {{0, 64, 1}, {64, 64, 1}};
    call(GetParam(), OpKind::grad_norm, {view_of(gradient, DType::f32), view_of(report, DType::f64), view_of(limbs, DType::i64)},
         {view_of(limbs, DType::i64)}, {{Attr::starts, std::vector<int64_t>{kNormLimbs + 3, kNormLimbs + 1}}}, {},
         {extents, 2, 128, 0, 128});
  }
  void clip() {
    call(GetParam(), OpKind::clip_factor,
         {view_of(limbs, DType::i64), view_of(report, DType::f64), make_view(&scale, DType::f32, {}), view_of(overflows, DType::i64)},
         {view_of(report, DType::f64), view_of(limbs, DType::i64), make_view(&scale, DType::f32, {}), view_of(overflows, DType::i64)}, {});
  }
  void step(const std::vector<float>& gradient, double loss = 1) {
    fold(loss, 2);
    norm(gradient);
    clip();
  }

  float scale = 1024;
  std::vector<double> report = std::vector<double>(kReportFields, 0);
  std::vector<int64_t> limbs = std::vector<int64_t>(norm_elements(5), 0), overflows = std::vector<int64_t>(overflow_elements(5), 0);
  std::vector<float> good = std::vector<float>(128, 0), bad;
  LossScale() {
    good[0] = 3 * 2048, good[100] = 4 * 2048;
    bad = good;
    bad[70] = INFINITY;
  }
};

INSTANTIATE_TEST_SUITE_P(All, LossScale, testing::ValuesIn(test_devices()), testing::PrintToStringParamName());

TEST_P(LossScale, IsDividedOut) {
  step(good);
  EXPECT_EQ(report[kReportLoss], 0.5);
  EXPECT_EQ(report[kReportWeight], 2 * 1024);
  EXPECT_EQ(report[kReportScale], 1024);
  EXPECT_EQ(report[kReportNorm], 5);
  EXPECT_EQ(report[kReportSkip], 0);
  EXPECT_EQ(scale, 1024);
  EXPECT_EQ(overflows, (std::vector<int64_t>{1, 0, 0, 0, 0, 0}));
}

TEST_P(LossScale, HalvesOnOverflowAndCountsIt) {
  step(good);
  step(bad);
  EXPECT_EQ(report[kReportSkip], 1);
  EXPECT_EQ(report[kReportOverflow], 1);
  EXPECT_EQ(report[kReportFinite], 1);
  EXPECT_EQ(scale, 512);
  EXPECT_EQ(overflows, (std::vector<int64_t>{0, 0, 1, 0, 0, 0}));  // parameter 1, one block; the row of good steps ends
  EXPECT_EQ(limbs, std::vector<int64_t>(norm_elements(5), 0));
  step(good);
  EXPECT_EQ(report[kReportOverflow], 0);
  EXPECT_EQ(report[kReportScale], 512);
  EXPECT_EQ(overflows, (std::vector<int64_t>{1, 0, 0, 0, 0, 0}));
}

TEST_P(LossScale, DoublesAfterEnoughSteps) {
  overflows[0] = kLossScaleInterval - 2;
  step(good);
  EXPECT_EQ(scale, 1024);
  step(good);
  EXPECT_EQ(scale, 2048);
  EXPECT_EQ(overflows[0], 0);
}

TEST_P(LossScale, AWindowWithoutWeightMovesNothing) {
  fold(0, 0);
  norm(good);
  clip();
  EXPECT_EQ(report[kReportSkip], 1);
  EXPECT_EQ(scale, 1024);
  EXPECT_EQ(overflows[0], 0);
}

// A unit of 150 parameters, of which every third is not finite, in one block each or in two.
TEST_P(LossScale, CountsTheParametersOfALargeUnit) {
  constexpr int kParameters = 150;
  std::vector<UnitExtent> extents;
  std::vector<int64_t> starts, want(kNormLimbs + kParameters, 0);
  std::vector<float> gradient(kParameters * 128, 1);
  for (int i = 0; i < kParameters; ++i) {
    extents.push_back({i * 128, 100, 1});
    starts.push_back(kNormLimbs + kParameters - 1 - i);
    if (i % 3 == 0) gradient[i * 128 + 5] = INFINITY;
    if (i % 6 == 0) gradient[i * 128 + 70] = NAN;
    want[starts.back()] = i % 6 == 0 ? 2 : i % 3 == 0 ? 1 : 0;
  }
  std::vector<int64_t> counts(want.size(), 0);
  report[kReportWeight] = 1;
  call(GetParam(), OpKind::grad_norm, {view_of(gradient, DType::f32), view_of(report, DType::f64), view_of(counts, DType::i64)},
       {view_of(counts, DType::i64)}, {{Attr::starts, starts}}, {}, {extents.data(), kParameters, kParameters * 128, 0, kParameters * 128});
  for (size_t i = kNormLimbs; i < want.size(); ++i) EXPECT_EQ(counts[i], want[i]) << i;
}

TEST_P(LossScale, WhatItDoesNotMendIsAnError) {
  step(bad, NAN);
  EXPECT_EQ(report[kReportFinite], 0);
  EXPECT_EQ(report[kReportOverflow], 0);
  EXPECT_EQ(scale, 1024);
  scale = kLossScaleLeast / 2;
  step(bad);
  EXPECT_EQ(report[kReportFinite], 0);
  EXPECT_EQ(overflows[2], 1);  // named all the same
}

}  // namespace
}  // namespace zeroplan
