#include <gtest/gtest.h>

#include "graph/ops/output_layout.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

// [B,T,C] → heads → attention → [B,T,C] → a product. `reader`: one more kernel that takes the attention's output as it is.
Plan attention_plan(bool reader) {
  constexpr int64_t kBatch = 2, kTokens = 16, kHeads = 4, kDepth = 8, kWidth = kHeads * kDepth;
  Graph graph;
  Builder build(graph);
  const ValueId x = add_input(graph, "x", DType::f32, {kBatch, kTokens, kWidth});
  std::vector<ValueId> heads;
  for (const char* name : {"q", "k", "v"}) {
    const ValueId product = build.add(OpKind::matmul, {x, add_parameter(graph, name, {kWidth, kWidth})});
    heads.push_back(build.transpose(build.reshape(product, {kBatch, kTokens, kHeads, kDepth}), {0, 2, 1, 3}));
  }
  const ValueId out = add_parameter(graph, "out", {kWidth, kWidth});
  const ValueId y = build.add_multi(OpKind::attention, heads, {{Attr::scale, 0.25}, {Attr::causal, int64_t{1}}})[0];
  ValueId rows = build.reshape(build.transpose(y, {0, 2, 1, 3}), {kBatch, kTokens, kWidth});
  if (reader) rows = build.add(OpKind::add, {rows, build.add(OpKind::softmax, {build.reshape(y, {kBatch, kTokens, kWidth})})});
  set_sum_loss(graph, build.add(OpKind::matmul, {rows, out}));
  return compile_graph(std::move(graph), options_of(2, 3));
}

// Copies of [B,H,T,D] or a transpose of it.
int head_copies(const Plan& plan) {
  int copies = 0;
  for (const Step& step : find_program(plan, Program::micro_step)->steps)
    copies += step.op == OpKind::copy && plan.tensors[step.inputs[0].tensor].shape.size() == 4 ? 1 : 0;
  return copies;
}

TEST(Layouts, AttentionWritesWhatTheNextProductReads) { EXPECT_EQ(head_copies(attention_plan(false)), 0); }

TEST(Layouts, AnotherReaderKeepsTheOrderOfAxes) { EXPECT_GT(head_copies(attention_plan(true)), 0); }

TEST(Layouts, KernelsWriteDenseLayoutsAlone) {
  const Shape shape = {2, 3, 4};
  EXPECT_TRUE(writes_layout(OpKind::attention, 0, shape, {12, 4, 1}));
  EXPECT_TRUE(writes_layout(OpKind::attention, 0, shape, {4, 8, 1}));
  EXPECT_FALSE(writes_layout(OpKind::attention, 0, shape, {4, 9, 1}));  // a gap
  EXPECT_FALSE(writes_layout(OpKind::attention, 0, shape, {4, 4, 1}));  // an overlap
  EXPECT_FALSE(writes_layout(OpKind::attention, 0, shape, {3, 1, 6}));  // the last axis is not innermost
  EXPECT_FALSE(writes_layout(OpKind::attention, 1, shape, {4, 8, 1}));
  EXPECT_FALSE(writes_layout(OpKind::relu, 0, shape, {4, 8, 1}));
}

}  // namespace
}  // namespace zeroplan::test
