// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: weights of classes, ignored labels, reductions, spatial axes.
#include <cmath>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

const Shape kScores = {2, 3, 4}, kLabels = {2, 4};
const std::vector<double> kWeights = {0.5, 2, 0.25};

HostTensor scores() { return random_reals(kScores, -3, 3); }
HostTensor labels() { return integers(kLabels, {0, 2, 1, 7, 2, 2, 0, 1}); }

// Log-probabilities in the place of the scores.
HostTensor log_softmax(const HostTensor& x) {
  HostTensor y(DType::f64, kScores);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t d = 0; d < 4; ++d) {
      double sum = 0;
      for (int64_t c = 0; c < 3; ++c) sum += std::exp(x.get((n * 3 + c) * 4 + d));
      for (int64_t c = 0; c < 3; ++c) y.set((n * 3 + c) * 4 + d, x.get((n * 3 + c) * 4 + d) - std::log(sum));
    }
  return y;
}

struct Expected {
  std::vector<double> losses;
  double sum = 0, weight = 0;
};
Expected expected_losses(const HostTensor& log_p, const HostTensor& label, bool weighted, std::optional<int64_t> ignored) {
  Expected e;
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t c = label.get_int(i);
    const bool counts = c != ignored;
    const double w = !counts ? 0 : weighted ? kWeights[c] : 1;
    e.losses.push_back(counts ? -w * log_p.get((i / 4 * 3 + c) * 4 + i % 4) : 0);
    e.sum += e.losses.back();
    e.weight += w;
  }
  return e;
}

OneNode node(const char* op, bool weighted, const char* reduction, std::optional<int64_t> ignored, const HostTensor& label) {
  OneNode one(op);
  one.input(scores()).input(label);
  if (weighted) one.input(reals({3}, kWeights));
  if (ignored) one.set("ignore_index", *ignored);
  return one.set("reduction", reduction);
}

TEST(LossNodes, WeightsAndIgnoredLabels) {
  const HostTensor all = integers(kLabels, {0, 2, 1, 1, 2, 2, 0, 1});
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})
    for (const bool weighted : {false, true})
      for (const std::optional<int64_t> ignored : {std::optional<int64_t>(), std::optional<int64_t>(7)}) {
        SCOPED_TRACE(std::string(op) + (weighted ? " weighted" : "") + (ignored ? " ignoring" : ""));
        const HostTensor label = ignored ? labels() : all;
        const Expected e = expected_losses(op[0] == 'S' ? log_softmax(scores()) : scores(), label, weighted, ignored);
        EXPECT_EQ(difference(node(op, weighted, "none", ignored, label).value(), kLabels, e.losses), "");
        EXPECT_EQ(difference(node(op, weighted, "sum", ignored, label).value(), {}, {e.sum}), "");
        EXPECT_EQ(difference(node(op, weighted, "mean", ignored, label).value(), {}, {e.sum / e.weight}), "");
        for (const char* reduction : {"none", "sum", "mean"})
          EXPECT_EQ(node(op, weighted, reduction, ignored, label).gradient_difference(), "") << reduction;
      }
}

TEST(LossNodes, LogProbabilitiesAreAnOutputOfTheirOwn) {
  OneNode one = node("SoftmaxCrossEntropyLoss", true, "mean", 7, labels()).outputs(2);
  const HostTensor wanted = log_softmax(scores());
  EXPECT_EQ(difference(one.values()[1], kScores, std::vector<double>(wanted.as<double>(), wanted.as<double>() + 24)), "");
  EXPECT_EQ(one.gradient_difference(), "");
}

TEST(LossNodes, ALabelThatIsNoClassIsNoZeroLoss) {
  EXPECT_TRUE(std::isnan(node("NegativeLogLikelihoodLoss", false, "mean", std::nullopt, labels()).value().get(0)));
  EXPECT_THAT(node("SoftmaxCrossEntropyLoss", true, "mean", std::nullopt, labels()).refusal(), HasSubstr("label 7 is outside"));
}

TEST(LossNodes, MisfitsAreNamed) {
  const HostTensor label = integers({2, 3}, {0, 1, 2, 0, 1, 2});
  EXPECT_THAT(OneNode("NegativeLogLikelihoodLoss").input(scores()).input(label).refusal(), HasSubstr("do not fit scores"));
  EXPECT_THAT(OneNode("SoftmaxCrossEntropyLoss").input(scores()).input(labels()).input(reals({2}, {1, 1})).set("ignore_index", 7).refusal(),
              HasSubstr("do not fit 3 classes"));
}

}  // namespace
}  // namespace zeroplan
