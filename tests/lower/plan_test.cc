#include <gtest/gtest.h>

#include "runtime/plan/dump.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

TEST(EmitPlan, Chain) {
  for (int stage : {0, 1, 2, 3}) {
    const Plan plan = compile_graph(chain(8, {10, 100, 10, 100, 10}), options_of(4, stage));
    EXPECT_GT(plan.programs.size(), 3u);
  }
}

}  // namespace
}  // namespace zeroplan::test
