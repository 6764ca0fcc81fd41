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

}  // namespace
}  // namespace zeroplan
