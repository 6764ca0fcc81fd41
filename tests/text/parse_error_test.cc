#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text/text.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kGood = R"(# a comment
input %x:f32[2,3]

  %y:f32[2,3] = neg(%x) {axis=1} # and another
inputs (%x)
)";

void expect_error(const std::string& line, const std::string& message) {
  const std::string text = kGood + line + "\n";
  EXPECT_THAT([&] { parse_graph(text); }, ThrowsMessage<Error>(AllOf(HasSubstr("line 6: "), HasSubstr(message)))) << line;
}

TEST(ParseGraph, SkipsCommentsAndBlankLines) {
  const Graph graph = parse_graph(kGood);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].attributes.get_int(Attr::axis), 1);
  EXPECT_EQ(graph.nodes[0].program, Program::micro_step);
}

TEST(ParseGraph, AcceptsTextWithoutALastNewline) { EXPECT_EQ(parse_graph("input %x:f32[]").values.size(), 1u); }

TEST(ParseGraph, NamesTheLineAndTheValue) {
  expect_error("%z:f32[2] = neg(%nowhere)", "%nowhere is not defined");
  expect_error("%z:f32[2] = neg(%z)", "%z is not defined");
  expect_error("%x:f32[2] = neg(%y)", "%x is defined twice");
  expect_error("%z = neg(%y)", "%z is not defined");
  expect_error("output \"o\" = %\"a b\"", "%\"a b\" is not defined");
}

TEST(ParseGraph, NamesTheWordThatIsUnknown) {
  expect_error("%z:f32[2] = frobnicate(%x)", "frobnicate");
  expect_error("%z:f8[2] = neg(%x)", "f8");
  expect_error("%z:f32[2] = neg(%x) {axel=1}", "axel");
  expect_error("program training", "training");
  expect_error("input %i:f32[]{node=1}", "node");
  expect_error("wrong", "wrong");
  expect_error("input %\"\":f32[]", "needs a name");
}

TEST(ParseGraph, RefusesBadNumbers) {
  expect_error("input %i:f32[-2]", "[-2]");
  expect_error("input %i:f32[9223372036854775807,2]", "64 bits");
  expect_error("input %i:f32[99999999999999999999]", "not a 64-bit integer");
  expect_error("input %i:f32[]{unit=-1}", "not an index");
  expect_error("constant %c:f32[2] = 1", "expected a number");
  expect_error("constant %c:f32[1] = x", "not a number");
  expect_error("constant %c:f32[1] = 1 2", "nothing more");
  expect_error("constant %c:f32[1] = hex 0000zz00", "hex digit");
  expect_error("constant %c:f32[4000000000000] = hex 00", "elements are needed");
}

TEST(ParseGraph, RefusesBrokenLines) {
  expect_error("%z:f32[2] = neg(%x", "expected ')'");
  expect_error("%z:f32[2] neg(%x)", "expected '='");
  expect_error("%z:f32[2] = neg(%x) {axis=1", "expected '}'");
  expect_error("output \"open", "does not end");
  expect_error("output \"bad \\q\" = %x", "unknown escape");
  expect_error("input %x2:f32[] input", "nothing more");
  expect_error("  alias \"a\"", "no parameter");
  expect_error("  member parameter=0 offset=0 elements=1", "no unit");
}

}  // namespace
}  // namespace zeroplan
