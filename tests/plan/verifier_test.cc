#include <gtest/gtest.h>

#include "runtime/plan/dump.h"
#include "tests/plan/plans.h"

namespace zeroplan::test {
namespace {

TEST(Verifier, AcceptsCompiledPlans) {
  for (int ranks : {1, 2, 3})
    for (int stage : {0, 1, 2, 3})
      for (int prefetch : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << "ranks " << ranks << " stage " << stage << " prefetch " << prefetch);
        EXPECT_EQ(violations(residual_plan(ranks, stage, prefetch)), "");
        EXPECT_EQ(violations(chain_plan(ranks, stage, prefetch)), "");
      }
}

}  // namespace
}  // namespace zeroplan::test
