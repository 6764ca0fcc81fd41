// Batch normalization whose running statistics are no parameters of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/error_of.h"
#include "tests/plan/plans.h"

namespace zeroplan::test {
namespace {

using testing::HasSubstr;

// An idle rank would add what it holds to sums over ranks that count its samples.
TEST(UnrecordedBatchNorm, SynchronisedItNeedsEveryRank) {
  EXPECT_FALSE(takes_part_batches(unrecorded_plan(4, true, 4)));
  EXPECT_TRUE(takes_part_batches(unrecorded_plan(4, false, 4)));
  EXPECT_TRUE(takes_part_batches(unrecorded_plan(1, true, 4)));  // nothing is summed
  for (const int64_t micro_batches : {2, 3, 6, 8})
    EXPECT_THAT(error_of([&] { unrecorded_plan(4, true, micro_batches); }), HasSubstr("use --micro-batches 4")) << micro_batches;
}

TEST(UnrecordedBatchNorm, HasNothingToEvaluateWith) {
  EXPECT_THAT(error_of([] { unrecorded_plan(2, false, 2, true); }), HasSubstr("has no running statistics that training keeps"));
}

}  // namespace
}  // namespace zeroplan::test
