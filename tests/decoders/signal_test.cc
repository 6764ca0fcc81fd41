// Fourier transforms against the sum that defines them, windows, mel weights.
#include <complex>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using Number = std::complex<double>;

// Bins [0, count) of the transform of x with zeros behind it.
std::vector<Number> transform(const std::vector<Number>& x, int64_t length, int64_t count, double sign) {
  std::vector<Number> y(count);
  for (int64_t k = 0; k < count; ++k)
    for (int64_t n = 0; n < std::min<int64_t>(length, static_cast<int64_t>(x.size())); ++n)
      y[k] += x[n] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(n * k) / static_cast<double>(length));
  return y;
}

std::vector<double> parts(const std::vector<Number>& y, double scale = 1) {
  std::vector<double> list;
  for (const Number& each : y) {
    list.push_back(each.real() * scale);
    list.push_back(each.imag() * scale);
  }
  return list;
}

std::vector<Number> numbers(const HostTensor& x, bool complex) {
  std::vector<Number> list;
  for (int64_t i = 0; i < x.count(); i += complex ? 2 : 1) list.emplace_back(x.get(i), complex ? x.get(i + 1) : 0);
  return list;
}

TEST(Signal, TransformsOfARealSignal) {
  const HostTensor x = random_reals({1, 5, 1});
  for (const int64_t length : {4, 5, 8}) {  // cut, whole, with zeros
    OneNode node = OneNode("DFT", 21).input(x).constant(integers({}, {length}));
    EXPECT_EQ(difference(node.value(), {1, length, 2}, parts(transform(numbers(x, false), length, length, -1))), "");
    node.set("onesided", 1);
    EXPECT_EQ(difference(node.value(), {1, length / 2 + 1, 2}, parts(transform(numbers(x, false), length, length / 2 + 1, -1))), "");
    EXPECT_EQ(node.gradient_difference(), "");
  }
}

TEST(Signal, InverseTransformOfAnyAxis) {
  const HostTensor x = random_reals({6, 1, 1, 2});
  OneNode node = OneNode("DFT", 21).input(x).absent().constant(integers({}, {0})).set("inverse", 1);
  EXPECT_EQ(difference(node.value(), {6, 1, 1, 2}, parts(transform(numbers(x, true), 6, 6, 1), 1.0 / 6)), "");
  EXPECT_EQ(node.gradient_difference(), "");
}

TEST(Signal, HalfASpectrumComesBackAsTheSignal) {
  for (const int64_t length : {8, 7}) {
    const HostTensor x = random_reals({2, length, 1});
    const HostTensor spectrum = OneNode("DFT", 21).input(x).set("onesided", 1).value();
    OneNode back = OneNode("DFT", 21).input(spectrum).constant(integers({}, {length})).set("onesided", 1).set("inverse", 1);
    EXPECT_EQ(difference(back.value(), {2, length, 1}, std::vector<double>(x.as<double>(), x.as<double>() + x.count())), "");
    EXPECT_EQ(back.gradient_difference(), "");
  }
}

TEST(Signal, RefusalsOfTheTransform) {
  EXPECT_THAT(OneNode("DFT", 21).input(random_reals({1, 4, 2})).set("onesided", 1).refusal(), HasSubstr("real signal"));
  EXPECT_THAT(OneNode("DFT", 21).input(random_reals({1, 4, 3})).refusal(), HasSubstr("last axis of 1 or 2"));
  EXPECT_THAT(OneNode("DFT", 21).input(random_reals({1, 4, 1})).absent().constant(integers({}, {2})).refusal(), HasSubstr("its axis"));
}

TEST(Signal, FramesOverlapUnderTheWindow) {
  const HostTensor x = random_reals({1, 10, 1}), window = reals({4}, {0.25, 1, 0.75, 0.5});
  OneNode node = OneNode("STFT").input(x).constant(integers({}, {3})).input(window);
  std::vector<double> expected;
  for (int64_t start = 0; start + 4 <= 10; start += 3) {
    std::vector<Number> frame;
    for (int64_t i = 0; i < 4; ++i) frame.emplace_back(x.get(start + i) * window.get(i));
    for (const double each : parts(transform(frame, 4, 3, -1))) expected.push_back(each);
  }
  EXPECT_EQ(difference(node.value(), {1, 3, 3, 2}, expected), "");
  EXPECT_EQ(node.gradient_difference(), "");
  OneNode plain = OneNode("STFT").input(x).constant(integers({}, {6})).absent().constant(integers({}, {4})).set("onesided", 0);
  EXPECT_EQ(plain.value().shape(), (Shape{1, 2, 4, 2}));
  EXPECT_THAT(OneNode("STFT").input(x).constant(integers({}, {3})).absent().constant(integers({}, {11})).refusal(),
              HasSubstr("do not fit"));
}

TEST(Signal, Windows) {
  const HostTensor four = integers({}, {4}), five = integers({}, {5});
  EXPECT_EQ(difference(OneNode("HannWindow").constant(four).value(), {4}, {0, 0.5, 1, 0.5}), "");
  EXPECT_EQ(difference(OneNode("HannWindow").constant(five).set("periodic", 0).value(), {5}, {0, 0.5, 1, 0.5, 0}), "");
  EXPECT_EQ(difference(OneNode("HammingWindow").constant(four).value(), {4}, {4.0 / 46, 25.0 / 46, 1, 25.0 / 46}), "");
  EXPECT_EQ(difference(OneNode("BlackmanWindow").constant(four).value(), {4}, {0, 0.34, 1, 0.34}), "");
}

TEST(Signal, MelWeightsAreTriangles) {
  OneNode node("MelWeightMatrix");
  node.constant(integers({}, {2})).constant(integers({}, {16})).constant(integers({}, {8192}));
  node.constant(reals({}, {0})).constant(reals({}, {4096}));
  // Edges at bins 0, 0, 2, 4 of 9.
  EXPECT_EQ(difference(node.value(), {9, 2}, {1, 0, 0.5, 0.5, 0, 1, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "");
}

}  // namespace
}  // namespace zeroplan
