#include "base/decimal.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(MeantDecimal, TakesWhatAFloatWasWrittenAs) {
  EXPECT_EQ(meant_decimal(1e-5f), 1e-5);
  EXPECT_EQ(meant_decimal(0.044715f), 0.044715);
  EXPECT_EQ(meant_decimal(0.5f), 0.5);
  EXPECT_EQ(meant_decimal(-3e20f), -3e20);
}

TEST(MeantDecimal, LeavesDoublesAlone) {
  EXPECT_EQ(meant_decimal(1e-5 * (1 + 1e-12)), 1e-5 * (1 + 1e-12));
  EXPECT_EQ(meant_decimal(M_PI), M_PI);
  EXPECT_EQ(meant_decimal(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(meant_decimal(std::nan(""))));
}

TEST(MeantRoot, TakesRootsOfWholeNumbers) {
  EXPECT_EQ(meant_root(std::sqrt(2.0f)), std::sqrt(2.0));
  EXPECT_NEAR(meant_root(static_cast<float>(std::pow(8.0, -0.25))), std::pow(8.0, -0.25), 1e-16);
  EXPECT_EQ(meant_root(0.125f), 0.125);
}

TEST(MeantRoot, LeavesOtherNumbersAlone) {
  EXPECT_EQ(meant_root(0.044715f), 0.044715f);
  EXPECT_EQ(meant_root(-1.4142135f), -1.4142135f);
  EXPECT_EQ(meant_root(std::sqrt(2.0) * (1 + 1e-12)), std::sqrt(2.0) * (1 + 1e-12));
  EXPECT_EQ(meant_root(0), 0);
}

}  // namespace
}  // namespace zeroplan
