// Activations against their definitions, and their gradients also where an exponential overflows.
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

struct Activation {
  const char* op;
  std::vector<std::pair<const char*, double>> attributes;
  std::function<double(double)> formula;
  int opset = 22;
};

double hard_sigmoid(double x) { return std::min(1.0, std::max(0.0, x / 6 + 0.5)); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double elu(double x, double alpha) { return x < 0 ? alpha * std::expm1(x) : x; }

const std::vector<Activation>& activations() {
  static const std::vector<Activation> list = {
      {"Elu", {{"alpha", 1.5}}, [](double x) { return elu(x, 1.5); }},
      {"Selu", {}, [](double x) { return 1.0507009873554805 * elu(x, 1.6732632423543772); }},
      {"Celu", {{"alpha", 0.5}}, [](double x) { return x < 0 ? 0.5 * std::expm1(x / 0.5) : x; }},
      {"HardSigmoid", {}, [](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.5)); }},
      {"HardSwish", {}, [](double x) { return x * hard_sigmoid(x); }},
      {"Softplus", {}, [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }},
      {"Mish", {}, [](double x) { return x * std::tanh(x > 30 ? x : std::log1p(std::exp(x))); }},
      {"Softsign", {}, [](double x) { return x / (1 + std::abs(x)); }},
      {"LeakyRelu", {{"alpha", 0.25}}, [](double x) { return x < 0 ? 0.25 * x : x; }},
      {"ThresholdedRelu", {{"alpha", 0.75}}, [](double x) { return x > 0.75 ? x : 0; }},
      {"Shrink", {{"lambd", 0.75}, {"bias", 0.5}}, [](double x) { return x < -0.75  ? x + 0.5
                                                                         : x > 0.75 ? x - 0.5
                                                                                    : 0; }},
      {"Gelu", {}, [](double x) { return x * normal_cdf(x); }},
      {"Swish", {{"alpha", 2}}, [](double x) { return x / (1 + std::exp(-2 * x)); }, 24},
  };
  return list;
}

TEST(Activations, FollowTheirDefinitionAndItsSlope) {
  const HostTensor x = reals({10}, {-800, -30, -2.5, -1, -0.25, 0.25, 0.5, 1, 2.5, 800});
  for (const Activation& each : activations()) {
    SCOPED_TRACE(each.op);
    OneNode node(each.op, each.opset);
    node.input(x);
    for (const auto& [name, value] : each.attributes) node.set(name, value);
    std::vector<double> expected;
    for (int64_t i = 0; i < x.count(); ++i) expected.push_back(each.formula(x.get(i)));
    EXPECT_EQ(difference(node.value(), {10}, expected), "");
    EXPECT_EQ(node.gradient_difference(), "");
  }
}

TEST(Activations, SoftplusHasItsSlopeAtZeroAndItsLimits) {
  const double infinity = INFINITY;
  EXPECT_EQ(difference(OneNode("Softplus").input(reals({3}, {-infinity, 0, infinity})).value(), {3}, {0, std::log(2), infinity}), "");
  EXPECT_EQ(OneNode("Softplus").input(reals({1}, {0})).gradient_difference(), "");
}

TEST(Activations, PReluTakesASlopePerChannel) {
  OneNode node = OneNode("PRelu").input(random_reals({2, 3, 4})).input(random_reals({3, 1}, 0, 1, 2));
  const HostTensor y = node.value();
  const HostTensor x = random_reals({2, 3, 4}), slope = random_reals({3, 1}, 0, 1, 2);
  for (int64_t i = 0; i < 24; ++i) EXPECT_DOUBLE_EQ(y.get(i), x.get(i) < 0 ? x.get(i) * slope.get(i / 4 % 3) : x.get(i));
  EXPECT_EQ(node.gradient_difference(), "");
  EXPECT_THAT(OneNode("PRelu").input(random_reals({3})).input(random_reals({2, 3})).refusal(), testing::HasSubstr("broadcast"));
}

TEST(Activations, HardmaxMarksTheFirstLargest) {
  const HostTensor x = reals({2, 3}, {1, 3, 3, 5, 2, 5});
  EXPECT_EQ(difference(OneNode("Hardmax").input(x).value(), {2, 3}, {0, 1, 0, 1, 0, 0}), "");
  EXPECT_EQ(difference(OneNode("Hardmax").input(x).set("axis", 0).value(), {2, 3}, {0, 1, 0, 1, 0, 1}), "");
}

TEST(Activations, LogSoftmaxOfLargeScoresStaysFinite) {
  OneNode node = OneNode("LogSoftmax").input(reals({2, 3}, {1000, 1001, -5000, 3, 4, 5})).set("axis", 1);
  const double high = std::log1p(std::exp(-1.0)), three = std::log(std::exp(-2.0) + std::exp(-1.0) + 1);
  EXPECT_EQ(difference(node.value(), {2, 3}, {-1 - high, -high, -6001 - high, -2 - three, -1 - three, -three}), "");
  EXPECT_EQ(node.gradient_difference(), "");
}

TEST(Activations, IntegersShrink) {
  OneNode node = OneNode("Shrink").input(integers({4}, {-3, -1, 1, 4})).set("lambd", 1.5).set("bias", 1.0);
  EXPECT_EQ(difference(node.value(), {4}, {-2, 0, 0, 3}), "");
}

}  // namespace
}  // namespace zeroplan
