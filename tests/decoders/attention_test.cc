// Attention against its definition, by the fused operator and by its parts: caches, masks, windows, caps, grouped heads.
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 2, kHeads = 4, kQueries = 3, kKeys = 5, kDepth = 4;

// What is added to the score of batch, head, query, key; -∞ hides the key.
using Bias = std::function<double(int64_t, int64_t, int64_t, int64_t)>;

struct Definition {
  HostTensor q, k, v;
  Bias bias = [](auto...) { return 0; };
  double softcap = 0;
};

struct Result {
  std::vector<double> y, scores, probabilities;
};

Result attend(const Definition& d) {
  const int64_t heads = d.k.shape()[1], keys = d.k.shape()[2], width = d.v.shape()[3];
  Result r;
  for (int64_t row = 0; row < kBatch * kHeads * kQueries; ++row) {
    const int64_t b = row / (kHeads * kQueries), h = row / kQueries % kHeads, i = row % kQueries, from = b * heads + h * heads / kHeads;
    std::vector<double> p(keys);
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (int64_t c = 0; c < kDepth; ++c) score += d.q.get(row * kDepth + c) * d.k.get((from * keys + j) * kDepth + c) / std::sqrt(kDepth);
      r.scores.push_back(score);
      if (d.softcap != 0) score = d.softcap * std::tanh(score / d.softcap);
      sum += p[j] = std::exp(score + d.bias(b, h, i, j));
    }
    for (int64_t j = 0; j < keys; ++j) r.probabilities.push_back(p[j] = sum == 0 ? 0 : p[j] / sum);
    for (int64_t c = 0; c < width; ++c) {
      double value = 0;
      for (int64_t j = 0; j < keys; ++j) value += p[j] * d.v.get((from * keys + j) * width + c);
      r.y.push_back(value);
    }
  }
  return r;
}

Definition definition(int64_t heads = kHeads, int64_t width = kDepth) {
  return {random_reals({kBatch, kHeads, kQueries, kDepth}, -2, 2, 1), random_reals({kBatch, heads, kKeys, kDepth}, -2, 2, 2),
          random_reals({kBatch, heads, kKeys, width}, -2, 2, 3)};
}

OneNode node(const Definition& d, int opset = 24) { return std::move(OneNode("Attention", opset).input(d.q).input(d.k).input(d.v)); }
double hidden_unless(bool seen) { return seen ? 0 : -INFINITY; }

void check(const Definition& d, const OneNode& one) {
  EXPECT_EQ(difference(one.value(), {kBatch, kHeads, kQueries, d.v.shape()[3]}, attend(d).y), "");
  EXPECT_EQ(one.gradient_difference(), "");
}

TEST(Attention, GroupedHeadsAndWiderValues) {
  check(definition(), node(definition()));
  check(definition(2), node(definition(2)));
  check(definition(2, 3), node(definition(2, 3)));
  EXPECT_THAT(node(definition(3)).refusal(), HasSubstr("do not fit each other"));
}

TEST(Attention, TheCausalFrontierStartsAtTheFirstKey) {
  Definition d = definition();
  d.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return hidden_unless(j <= i); };
  check(d, node(d).set("is_causal", 1));
}

TEST(Attention, ABooleanMaskMayHideARowAndIsFilledUp) {
  Definition d = definition();
  const HostTensor mask = booleans({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 1});
  d.bias = [&](int64_t, int64_t, int64_t i, int64_t j) { return hidden_unless(j < 3 && mask.get(i * 3 + j) != 0); };
  check(d, node(d).input(mask));
  d.softcap = 0.5;
  check(d, node(d).input(mask).set("softcap", 0.5));
}

TEST(Attention, AMaskOfNumbersHasAGradient) {
  Definition d = definition();
  const HostTensor mask = random_reals({kHeads, kQueries, kKeys}, -1, 1, 9);
  d.bias = [&](int64_t, int64_t h, int64_t i, int64_t j) { return mask.get((h * kQueries + i) * kKeys + j); };
  check(d, node(d).input(mask));
}

TEST(Attention, LengthsWithoutPaddingMoveTheFrontier) {
  Definition d = definition();
  const int64_t valid[] = {5, 2};
  d.bias = [&](int64_t b, int64_t, int64_t i, int64_t j) { return hidden_unless(j < valid[b] && j <= i + valid[b] - kQueries); };
  check(d, node(d).absent().absent().absent().input(integers({2}, {5, 2})).set("is_causal", 1));
}

TEST(Attention, PastKeysComeFirst) {
  const Definition whole = definition(2);
  const auto piece = [](const HostTensor& x, int64_t first, int64_t count) {
    HostTensor y(DType::f64, {kBatch, 2, count, kDepth});
    for (int64_t i = 0; i < y.count(); ++i) y.set(i, x.get((i / (count * kDepth) * kKeys + first) * kDepth + i % (count * kDepth)));
    return y;
  };
  Definition d = whole;
  d.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return hidden_unless(j <= i + 2); };
  OneNode one = OneNode("Attention", 23).input(d.q).input(piece(d.k, 2, 3)).input(piece(d.v, 2, 3)).absent();
  one.input(piece(d.k, 0, 2)).input(piece(d.v, 0, 2)).set("is_causal", 1).outputs(3);
  check(d, one);
  EXPECT_EQ(one.values()[1].get(7), whole.k.get(7));
  EXPECT_EQ(one.values()[2].shape(), (Shape{kBatch, 2, kKeys, kDepth}));
}

TEST(Attention, ItsScoresAreAnOutput) {
  Definition d = definition();
  d.softcap = 0.75;
  d.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return hidden_unless(j <= i); };
  const Result r = attend(d);
  const Shape shape = {kBatch, kHeads, kQueries, kKeys};
  for (const int64_t mode : {0, 1, 2, 3}) {
    std::vector<double> expected;
    for (size_t i = 0; i < r.scores.size(); ++i) {
      const double capped = 0.75 * std::tanh(r.scores[i] / 0.75);
      const int64_t at = static_cast<int64_t>(i);
      expected.push_back(mode == 0   ? r.scores[i]
                         : mode == 1 ? capped
                         : mode == 2 ? capped + d.bias(0, 0, at / kKeys % kQueries, at % kKeys)
                                     : r.probabilities[i]);
    }
    OneNode one = node(d).set("is_causal", 1).set("softcap", 0.75).set("qk_matmul_output_mode", mode).outputs(4);
    EXPECT_EQ(difference(one.values()[3], shape, expected), "") << mode;
  }
}

TEST(Attention, RankThreeSplitsTheHeads) {
  const HostTensor x = random_reals({2, 3, 8});
  OneNode one = OneNode("Attention", 23).input(x).input(x).input(x).set("q_num_heads", 2).set("kv_num_heads", 2);
  EXPECT_EQ(one.value().shape(), (Shape{2, 3, 8}));
  EXPECT_EQ(one.gradient_difference(), "");
  EXPECT_THAT(OneNode("Attention", 23).input(x).input(x).input(x).refusal(), HasSubstr("q_num_heads"));
}

}  // namespace
}  // namespace zeroplan
