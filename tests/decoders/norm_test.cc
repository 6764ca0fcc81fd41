// LayerNormalization, RMSNormalization, RotaryEmbedding.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

struct Normalized {
  std::vector<double> y, mean, deviation;  // of each group of `columns`; the deviation inverse
};
Normalized normalized(const HostTensor& x, int64_t columns, bool centred) {
  Normalized n;
  for (int64_t first = 0; first < x.count(); first += columns) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < columns; ++i) mean += centred ? x.get(first + i) / static_cast<double>(columns) : 0;
    for (int64_t i = 0; i < columns; ++i) square += std::pow(x.get(first + i) - mean, 2) / static_cast<double>(columns);
    n.mean.push_back(mean);
    n.deviation.push_back(1 / std::sqrt(square + 1e-5));
    for (int64_t i = 0; i < columns; ++i) n.y.push_back((x.get(first + i) - mean) * n.deviation.back());
  }
  return n;
}

const Shape kShape = {2, 3, 4};
HostTensor data() { return random_reals(kShape); }

TEST(Norms, OverAnyTrailingAxes) {
  for (const auto& [axis, columns, scale_shape] :
       {std::tuple{1, 12, Shape{3, 4}}, {2, 4, Shape{4}}, {-1, 4, Shape{4}}, {1, 12, Shape{1, 4}}}) {
    const HostTensor scale = random_reals(scale_shape, 0.5, 2, 5);
    for (const bool centred : {true, false}) {
      std::vector<double> expected = normalized(data(), columns, centred).y;
      for (size_t i = 0; i < expected.size(); ++i) expected[i] *= scale.get(static_cast<int64_t>(i) % scale.count());
      OneNode node(centred ? "LayerNormalization" : "RMSNormalization", 23);
      node.input(data()).input(scale).set("axis", axis);
      EXPECT_EQ(difference(node.value(), kShape, expected), "") << axis << centred;
      EXPECT_EQ(node.gradient_difference(), "") << axis << centred;
    }
  }
}

TEST(Norms, FactorsMayDifferBetweenRows) {
  const HostTensor scale = random_reals({3, 4}, 0.5, 2, 5), bias = random_reals({4}, -1, 1, 6);
  std::vector<double> expected = normalized(data(), 4, true).y;
  for (int64_t i = 0; i < 24; ++i) expected[i] = expected[i] * scale.get(i % 12) + bias.get(i % 4);
  OneNode node = OneNode("LayerNormalization").input(data()).input(scale).input(bias).set("axis", 2);
  EXPECT_EQ(difference(node.value(), kShape, expected), "");
  EXPECT_EQ(node.gradient_difference(), "");
}

TEST(Norms, MeanAndDeviationAreOutputs) {
  OneNode node = OneNode("LayerNormalization").input(data()).input(random_reals({3, 4}, 0.5, 2, 5)).set("axis", 1).outputs(3);
  const Normalized wanted = normalized(data(), 12, true);
  EXPECT_EQ(difference(node.values()[1], {2, 1, 1}, wanted.mean), "");
  EXPECT_EQ(difference(node.values()[2], {2, 1, 1}, wanted.deviation), "");
  EXPECT_EQ(node.gradient_difference(), "");
}

// x [B,H,T,D] of which the first `rotated` columns turn; pair(k) gives the two columns of an angle.
std::vector<double> rotated(const HostTensor& x, const HostTensor& cosines, const HostTensor& sines, int64_t width, bool interleaved) {
  const Shape& s = x.shape();
  std::vector<double> y(x.as<double>(), x.as<double>() + x.count());
  for (int64_t row = 0; row < x.count() / s[3]; ++row)
    for (int64_t k = 0; k < width; ++k) {
      const int64_t first = row * s[3] + (interleaved ? 2 * k : k), second = first + (interleaved ? 1 : width);
      const int64_t angle = (row / (s[1] * s[2]) * s[2] + row % s[2]) * width + k;
      y[first] = x.get(first) * cosines.get(angle) - x.get(second) * sines.get(angle);
      y[second] = x.get(first) * sines.get(angle) + x.get(second) * cosines.get(angle);
    }
  return y;
}

TEST(Rotary, HalvesOrPairsOfAllColumnsOrSome) {
  const HostTensor x = random_reals({2, 3, 4, 6});
  for (const bool interleaved : {false, true})
    for (const int64_t width : {2, 3}) {
      const HostTensor cosines = random_reals({2, 4, width}, -1, 1, 3), sines = random_reals({2, 4, width}, -1, 1, 4);
      OneNode node = OneNode("RotaryEmbedding", 23).input(x).input(cosines).input(sines);
      node.set("interleaved", int64_t{interleaved}).set("rotary_embedding_dim", width == 3 ? 0 : 4);
      EXPECT_EQ(difference(node.value(), {2, 3, 4, 6}, rotated(x, cosines, sines, width, interleaved)), "") << width << interleaved;
      EXPECT_EQ(node.gradient_difference(), "");
    }
}

TEST(Rotary, PositionsChooseRowsOfTheTable) {
  const HostTensor x = random_reals({1, 2, 8}), table = random_reals({5, 2}, -1, 1, 3), other = random_reals({5, 2}, -1, 1, 4);
  OneNode by_position =
      OneNode("RotaryEmbedding", 23).input(x).input(table).input(other).input(integers({1, 2}, {4, 1})).set("num_heads", 2);
  const auto chosen = [](const HostTensor& t) { return reals({1, 2, 2}, {t.get(8), t.get(9), t.get(2), t.get(3)}); };
  OneNode by_rows = OneNode("RotaryEmbedding", 23).input(x).input(chosen(table)).input(chosen(other)).set("num_heads", 2);
  const HostTensor wanted = by_rows.value();
  EXPECT_EQ(difference(by_position.value(), {1, 2, 8}, std::vector<double>(wanted.as<double>(), wanted.as<double>() + 16)), "");
}

}  // namespace
}  // namespace zeroplan
