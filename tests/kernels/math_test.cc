// Accuracy of the polynomial functions in float against the standard library in double, and their special values.
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

std::vector<float> apply(OpKind op, const std::string& set, const std::vector<float>& x) {
  std::vector<float> in = x, out(x.size());
  const TensorView input = make_view(in.data(), DType::f32, {static_cast<int64_t>(x.size())}),
                   output = make_view(out.data(), DType::f32, {static_cast<int64_t>(x.size())});
  const Attributes attributes;
  KernelArgs args;
  args.inputs = &input;
  args.input_count = 1;
  args.outputs = &output;
  args.output_count = 1;
  args.attributes = &attributes;
  cpu_kernel(op, set)(args);
  return out;
}

struct Sweep {
  OpKind op;
  double low, high;
  double ulps;  // allowed distance, in units in the last place of the result
  std::function<double(double)> exact;
};

double distance_in_ulps(float got, double want) {
  const float near = static_cast<float>(want);
  if (got == near) return 0;
  const double spacing =
      std::max<double>(std::nextafter(std::fabs(near), INFINITY) - std::fabs(near), std::numeric_limits<float>::denorm_min());
  return std::fabs(got - want) / spacing;
}

TEST(Accuracy, PolynomialsStayWithinUlps) {
  const std::vector<Sweep> sweeps = {
      {OpKind::exp, -104, 88.7, 2, [](double x) { return std::exp(x); }},
      {OpKind::log, 1e-30, 1e-3, 2, [](double x) { return std::log(x); }},
      {OpKind::log, 1e-3, 4, 2, [](double x) { return std::log(x); }},
      {OpKind::log, 4, 1e30, 2, [](double x) { return std::log(x); }},
      {OpKind::tanh, -12, 12, 2.5, [](double x) { return std::tanh(x); }},
      {OpKind::tanh, -0.7, 0.7, 2.5, [](double x) { return std::tanh(x); }},
      {OpKind::sigmoid, -90, 90, 3, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {OpKind::erf, -4.5, 4.5, 2, [](double x) { return std::erf(x); }},
      {OpKind::erf, -1e-3, 1e-3, 2, [](double x) { return std::erf(x); }},
      {OpKind::sin, -30, 30, 2, [](double x) { return std::sin(x); }},
      {OpKind::cos, -30, 30, 2, [](double x) { return std::cos(x); }},
  };
  constexpr int kSteps = 40001;
  for (const std::string& set : instruction_sets()) {
    for (const Sweep& sweep : sweeps) {
      std::vector<float> x(kSteps);
      for (int i = 0; i < kSteps; ++i) x[i] = static_cast<float>(sweep.low + (sweep.high - sweep.low) * i / (kSteps - 1));
      const std::vector<float> y = apply(sweep.op, set, x);
      double worst = 0, where = 0;
      for (int i = 0; i < kSteps; ++i) {
        const double distance = distance_in_ulps(y[i], sweep.exact(x[i]));
        if (distance > worst) worst = distance, where = x[i];
      }
      EXPECT_LE(worst, sweep.ulps) << op_name(sweep.op) << " at " << where << " with " << set;
    }
  }
}

TEST(SpecialValues, FollowTheStandardLibrary) {
  const float inf = INFINITY, nan = NAN, tiny = 1e-42f;
  const std::vector<float> x = {0.0f, -0.0f, inf, -inf, nan, 1e30f, -1e30f, tiny, -tiny, 89, -110, 1, -1, 3.4e38f, 1.2e-38f};
  using Function = double (*)(double);
  const std::vector<std::pair<OpKind, Function>> functions = {
      {OpKind::exp, [](double v) { return std::exp(v); }},
      {OpKind::log, [](double v) { return std::log(v); }},
      {OpKind::tanh, [](double v) { return std::tanh(v); }},
      {OpKind::erf, [](double v) { return std::erf(v); }},
      {OpKind::sqrt, [](double v) { return std::sqrt(v); }},
      {OpKind::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {OpKind::abs, [](double v) { return std::fabs(v); }},
      {OpKind::relu, [](double v) { return v < 0 ? 0 : v; }},
      {OpKind::reciprocal, [](double v) { return 1 / v; }},
      {OpKind::sign, [](double v) { return std::isnan(v) ? v : static_cast<double>((v > 0) - (v < 0)); }},
  };
  for (const std::string& set : instruction_sets()) {
    for (const auto& [op, exact] : functions) {
      const std::vector<float> y = apply(op, set, x);
      for (size_t i = 0; i < x.size(); ++i) {
        const float want = static_cast<float>(exact(x[i]));
        SCOPED_TRACE(std::string(op_name(op)) + "(" + std::to_string(x[i]) + ") with " + set);
        if (std::isnan(want))
          EXPECT_TRUE(std::isnan(y[i])) << y[i];
        else if (std::isinf(want))
          EXPECT_EQ(y[i], want);
        else
          EXPECT_LE(distance_in_ulps(y[i], exact(x[i])), 3) << y[i] << " is not " << want;
      }
    }
  }
}

}  // namespace
}  // namespace zeroplan
