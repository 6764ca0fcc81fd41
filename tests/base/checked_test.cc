#include "base/checked.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"

namespace zeroplan {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Checked, AddsUpToTheLimit) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_THROW(checked_add(kMax, 1), Error);
  EXPECT_THROW(checked_add(-kMax, -2), Error);
}

TEST(Checked, MultipliesUpToTheLimit) {
  EXPECT_EQ(checked_mul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_THROW(checked_mul(int64_t{1} << 32, int64_t{1} << 31), Error);
  EXPECT_EQ(checked_mul(kMax, 0), 0);
}

TEST(Checked, RoundsUp) {
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(1, 64), 64);
  EXPECT_EQ(round_up(64, 64), 64);
  EXPECT_THROW(round_up(kMax, 64), Error);
  EXPECT_EQ(ceil_div(kMax, 1), kMax);
  EXPECT_EQ(ceil_div(7, 3), 3);
  EXPECT_THROW(ceil_div(7, 0), std::logic_error);
}

}  // namespace
}  // namespace zeroplan
