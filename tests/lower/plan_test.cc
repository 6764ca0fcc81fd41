#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/plan/dump.h"
#include "runtime/plan/verifier.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

std::string violations(const Plan& plan) {
  std::string text;
  for (const Violation& v : verify_plan(plan).violations) text += fmt::format("[{}] {} {}: {}\n", v.rule, v.program, v.step, v.message);
  return text;
}

TEST(EmitPlan, ChainPassesTheVerifier) {
  for (int stage : {0, 1, 2, 3})
    for (int ranks : {1, 3, 4})
      for (int prefetch : {0, 1, 3})
        for (bool eval : {false, true}) {
          CompileOptions options = options_of(ranks, stage, prefetch);
          options.eval = eval;
          EXPECT_EQ(violations(compile_graph(chain(8, {10, 100, 10, 100, 10}, true), options)), "") << stage << ranks << prefetch;
        }
}

TEST(EmitPlan, ResidualPassesTheVerifier) {
  for (int stage : {0, 1, 2, 3})
    for (int ranks : {1, 3, 4})
      for (int prefetch : {0, 1, 3})
        for (bool eval : {false, true}) {
          CompileOptions options = options_of(ranks, stage, prefetch);
          options.eval = eval;
          EXPECT_EQ(violations(compile_graph(residual(4, 8, 12, 50), options)), "") << stage << ranks << prefetch;
        }
}

// The activation is called like the gathered copy of the weight's view.
TEST(EmitPlan, NamesOfTheModelSayNothingOfCopies) {
  Graph graph;
  Builder build(graph);
  const ValueId x = add_input(graph, "x", DType::f32, {4, 6}), w = add_parameter(graph, "w", {5, 6}), u = add_parameter(graph, "u", {4, 3});
  const Attributes swap = {{Attr::permutation, std::vector<int64_t>{1, 0}}};
  const ValueId h = build.add(OpKind::matmul, {x, build.add(OpKind::transpose, {w}, swap, "t")});
  set_sum_loss(graph, build.add(OpKind::matmul, {build.add(OpKind::transpose, {h}, swap, "t@1"), u}));
  EXPECT_EQ(violations(compile_graph(graph, options_of(2, 3))), "");
}

}  // namespace
}  // namespace zeroplan::test
