#include "base/counted.h"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(2, "sample"), "2 samples");
  EXPECT_EQ(counted(1, "micro-batch"), "1 micro-batch");
  EXPECT_EQ(counted(3, "micro-batch"), "3 micro-batches");
}

}  // namespace
}  // namespace zeroplan
