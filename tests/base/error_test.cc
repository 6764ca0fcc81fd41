#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeroplan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

ErrorContext full_context() {
  ErrorContext context;
  context.rank = 1;
  context.step = 3;
  context.micro_batch = 5;
  context.plan_op = 17;
  context.program = "micro_step";
  context.op = "all_gather";
  context.node = "n";
  context.unit = "h.1";
  context.parameters = "a, b";
  return context;
}

TEST(Error, SaysWhereItHappened) {
  EXPECT_STREQ(Error("lost a peer", full_context()).what(),
               "lost a peer (rank 1, step 3, micro-batch 5, micro_step[17] all_gather, unit h.1, parameters a, b, node n)");
  EXPECT_STREQ(Error("lost a peer").what(), "lost a peer");
}

TEST(Error, ZeroIsAKnownNumber) {
  ErrorContext context;
  context.rank = 0;
  context.plan_op = 0;
  EXPECT_STREQ(Error("x", context).what(), "x (rank 0, step[0])");
}

TEST(Error, LeavesOutWhatIsUnknown) {
  ErrorContext context;
  context.op = "matmul";
  context.parameters = "w";
  EXPECT_STREQ(Error("x", context).what(), "x (op matmul, parameter w)");
}

TEST(Error, WithinFillsOnlyWhatIsUnknown) {
  ErrorContext inner;
  inner.rank = 0;
  inner.op = "matmul";
  const Error error = Error("x", inner).within(full_context());
  EXPECT_EQ(error.context().rank, 0);
  EXPECT_EQ(error.context().op, "matmul");
  EXPECT_EQ(error.context().step, 3);
  EXPECT_EQ(error.context().micro_batch, 5);
  EXPECT_EQ(error.context().plan_op, 17);
  EXPECT_EQ(error.context().program, "micro_step");
  EXPECT_EQ(error.context().node, "n");
  EXPECT_EQ(error.context().unit, "h.1");
  EXPECT_EQ(error.context().parameters, "a, b");
  EXPECT_EQ(error.message(), "x");
}

TEST(Error, AZeroByteDoesNotEndTheMessage) {
  EXPECT_STREQ(Error(std::string("name a\0b; rename it", 19)).what(), "name a\\x00b; rename it");
}

TEST(ErrorList, ListsEveryProblem) {
  const ErrorList list("two problems:", {"first", "second"});
  EXPECT_STREQ(list.what(), "two problems:\n  first\n  second");
  EXPECT_EQ(list.problems().size(), 2u);
}

TEST(Check, NamesTheConditionAndThePlace) {
  EXPECT_NO_THROW(check(true, "never"));
  EXPECT_THAT([] { check(false, "slots overlap"); }, ThrowsMessage<std::logic_error>(HasSubstr("slots overlap")));
  EXPECT_THAT([] { check(false, "x"); }, ThrowsMessage<std::logic_error>(HasSubstr("error_test.cc")));
}

}  // namespace
}  // namespace zeroplan
