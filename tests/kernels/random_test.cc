// Random numbers: the generator against its published vectors, and what an element's number depends on.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/scalar/philox.h"
#include "tests/kernels/step_call.h"

namespace zeroplan {
namespace {

void expect_words(const PhiloxBlock& block, std::array<uint32_t, 4> words) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], words[i]) << i;
}

// The known answers that come with Random123.
TEST(Philox, KnownAnswers) {
  expect_words(philox({{0, 0, 0, 0}}, {0, 0}), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t kAll = 0xffffffff;
  expect_words(philox({{kAll, kAll, kAll, kAll}}, {kAll, kAll}), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {0xa4093822, 0x299f31d0}),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

constexpr int64_t kCount = 10007;

struct Draw {
  RunScalars scalars = {.step = 3, .micro_batch = 2, .seed = 5};
  int64_t key = 77;
  int threads = 1;
  std::string set = cpu_instruction_set();

  template <typename T>
  std::vector<T> uniform() const {
    std::vector<T> y(kCount);
    const TensorView out = make_view(y.data(), sizeof(T) == 4 ? DType::f32 : DType::f64, {kCount});
    const Attributes attributes = {{Attr::key, key}};
    run(OpKind::random_uniform, {}, {out}, attributes);
    return y;
  }

  struct Dropped {
    std::vector<float> y;
    std::vector<uint8_t> mask;
    bool operator==(const Dropped&) const = default;
  };
  Dropped dropout(double ratio, std::vector<float> x = std::vector<float>(kCount, 1)) const {
    Dropped d{std::vector<float>(kCount), std::vector<uint8_t>(kCount)};
    const Attributes attributes = {{Attr::key, key}, {Attr::ratio, ratio}};
    run(OpKind::dropout, {make_view(x.data(), DType::f32, {kCount})},
        {make_view(d.y.data(), DType::f32, {kCount}), make_view(d.mask.data(), DType::boolean, {kCount})}, attributes);
    return d;
  }

 private:
  void run(OpKind op, std::vector<TensorView> in, std::vector<TensorView> out, const Attributes& attributes) const {
    StepCall{std::move(in), std::move(out), attributes, scalars, {}, threads}.run(cpu_device(set), op);
  }
};

TEST(RandomUniform, IsUniformFromZeroToBelowOne) {
  const std::vector<double> y = Draw{}.uniform<double>();
  double sum = 0, squares = 0;
  for (const double x : y) {
    ASSERT_TRUE(x >= 0 && x < 1);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.015);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.015);
}

TEST(RandomUniform, SinglesAreTheDoublesCutOff) {
  const std::vector<double> wide = Draw{}.uniform<double>();
  const std::vector<float> narrow = Draw{}.uniform<float>();
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(narrow[i], std::floor(wide[i] * 0x1p24) * 0x1p-24) << i;
}

TEST(RandomUniform, EachPartOfTheKeyCounts) {
  const Draw base;
  const std::vector<float> y = base.uniform<float>();
  EXPECT_EQ(base.uniform<float>(), y);
  Draw other = base;
  other.key = 78;
  EXPECT_NE(other.uniform<float>(), y);
  for (const RunScalars& scalars : {RunScalars{.step = 4, .micro_batch = 2, .seed = 5}, RunScalars{.step = 3, .micro_batch = 1, .seed = 5},
                                    RunScalars{.step = 3, .micro_batch = 2, .seed = 6}}) {
    other = base;
    other.scalars = scalars;
    EXPECT_NE(other.uniform<float>(), y);
  }
}

TEST(Random, ThreadsAndInstructionSetsGiveTheSameBits) {
  const Draw base;
  const auto y = base.uniform<float>();
  const auto z = base.uniform<double>();
  const auto dropped = base.dropout(0.3);
  for (const std::string& set : instruction_sets())
    for (const int threads : {1, 2, 3}) {
      Draw other = base;
      other.set = set;
      other.threads = threads;
      EXPECT_EQ(other.uniform<float>(), y) << set;
      EXPECT_EQ(other.uniform<double>(), z) << set;
      EXPECT_EQ(other.dropout(0.3), dropped) << set;
    }
}

TEST(Dropout, KeepsTheShareAndScalesIt) {
  for (const double ratio : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    const Draw::Dropped d = Draw{}.dropout(ratio);
    int64_t kept = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      kept += d.mask[i];
      ASSERT_EQ(d.y[i], d.mask[i] ? static_cast<float>(1 / (1 - ratio)) : 0.0f);
    }
    EXPECT_NEAR(static_cast<double>(kept) / kCount, 1 - ratio, 0.02) << ratio;
  }
}

// Zero selects, it does not multiply.
TEST(Dropout, WhatIsDroppedMayBeNotANumber) {
  const Draw::Dropped d = Draw{}.dropout(0.5, std::vector<float>(kCount, NAN));
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(std::isnan(d.y[i]), d.mask[i] != 0);
}

}  // namespace
}  // namespace zeroplan
