#include <gtest/gtest.h>

#include "tests/plan/plans.h"

namespace zeroplan::test {
namespace {

TEST(Verifier, AcceptsCompiledPlans) {
  for (int ranks : {1, 2, 3})
    for (int stage : {0, 1, 2, 3})
      for (int prefetch : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << "ranks " << ranks << " stage " << stage << " prefetch " << prefetch);
        for (int rounds : {1, 2}) {
          EXPECT_EQ(violations(residual_plan(ranks, stage, prefetch, rounds)), "");
          EXPECT_EQ(violations(chain_plan(ranks, stage, prefetch, rounds)), "");
        }
      }
}

TEST(Verifier, AcceptsBatchStatistics) {
  for (int ranks : {1, 2, 3})
    for (int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << "ranks " << ranks << " stage " << stage);
      for (int rounds : {1, 2}) EXPECT_EQ(violations(normalized_plan(ranks, stage, rounds)), "");
      EXPECT_EQ(violations(normalized_plan(ranks, stage, 1, true)), "");
    }
}

TEST(Verifier, AcceptsModels) {
  for (const char* name : {"mlp", "gpt2_nano_dynamo", "gpt2_nano_ts"})
    for (int ranks : {1, 2, 3})
      for (int stage : {0, 1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << name << " ranks " << ranks << " stage " << stage);
        EXPECT_EQ(violations(model_plan(name, ranks, stage)), "");
      }
}

}  // namespace
}  // namespace zeroplan::test
