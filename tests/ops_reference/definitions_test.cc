// The table itself: names, coverage by cases, strides, in-place pairs, workspace, cost.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops/elementwise.h"
#include "graph/ops/scalar_reference.h"
#include "graph/ops/workspace.h"
#include "tests/op_cases/cases.h"
#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

std::vector<OpKind> all_ops() {
  return {
#define ZP_OP(name) OpKind::name,
#include "graph/ops/ops.def"
#undef ZP_OP
  };
}

bool is_training_step(OpKind op) {
  static const std::set<OpKind> ops = {OpKind::record_loss,      OpKind::record_output,     OpKind::fill_padding,
                                       OpKind::fold_metrics,     OpKind::grad_norm,         OpKind::clip_factor,
                                       OpKind::optimizer_update, OpKind::record_statistics, OpKind::fold_statistics};
  return ops.contains(op);
}

// Their numbers depend on the step: tests/kernels/random_test.cc, and the gradient in tests/e2e/dropout_test.cc.
bool is_random(OpKind op) { return op == OpKind::random_uniform || op == OpKind::dropout; }

// What no constant may be made of.
TEST(Definitions, RandomNumbersHaveNoEvaluator) {
  for (const OpKind op : all_ops())
    if (is_random(op)) EXPECT_EQ(op_def(op).evaluate, nullptr) << op_name(op);
}

TEST(Definitions, NamesAreReadBack) {
  for (const OpKind op : all_ops()) {
    EXPECT_EQ(parse_op(op_name(op)), op);
    EXPECT_EQ(op_def(op).kind, op);
    EXPECT_NE(op_def(op).infer, nullptr) << op_name(op);
  }
  EXPECT_THROW(parse_op("no_such_op"), Error);
  EXPECT_EQ(op_class(OpKind::slice_grad), OpClass::kernel);
  EXPECT_EQ(op_class(OpKind::slice), OpClass::view);
  EXPECT_EQ(op_class(OpKind::range), OpClass::fold);
  EXPECT_EQ(op_class(OpKind::gather_weights), OpClass::comm);
  EXPECT_EQ(op_class(OpKind::load_unit), OpClass::host);
}

TEST(Definitions, EveryKernelOpHasACase) {
  std::set<OpKind> covered;
  std::set<std::string> names;
  for (const OpCase& each : op_cases()) {
    covered.insert(each.op);
    EXPECT_TRUE(names.insert(each.name).second) << each.name << " is there twice";
  }
  for (const OpKind op : all_ops()) {
    if (op_class(op) != OpClass::kernel || is_training_step(op) || is_random(op)) continue;
    EXPECT_TRUE(covered.contains(op)) << op_name(op);
  }
}

TEST(Definitions, EveryVjpWithAFloatingResultHasACheckedCase) {
  std::set<OpKind> differentiable;
  for (const OpCase& each : op_cases())
    if (each.differentiable) differentiable.insert(each.op);
  const std::set<OpKind> no_gradient = {OpKind::equal,       OpKind::greater,    OpKind::less_equal,  OpKind::greater_equal,
                                        OpKind::logical_and, OpKind::logical_or, OpKind::logical_not, OpKind::fill};
  for (const OpKind op : all_ops()) {
    if (!op_def(op).vjp || no_gradient.contains(op) || takes_integers_alone(op) || is_random(op) || op == OpKind::all_reduce) continue;
    EXPECT_TRUE(differentiable.contains(op)) << op_name(op);
  }
}

TEST(Definitions, InPlacePairsNameOperandsThatExist) {
  std::map<OpKind, std::pair<int, int>> most;  // outputs and inputs of the case with the most: operands may be optional
  for (const OpCase& each : op_cases()) {
    const Node node = build_case(each, DType::f32, 1).node;
    auto& [outputs, inputs] = most[each.op];
    outputs = std::max(outputs, static_cast<int>(node.outputs.size()));
    inputs = std::max(inputs, static_cast<int>(node.inputs.size()));
  }
  for (const auto& [op, count] : most)
    for (const auto& [output, input] : op_def(op).in_place) {
      EXPECT_LT(output, count.first) << op_name(op);
      if (op == OpKind::elementwise) continue;  // the pairs cover as many operands as a chain may have
      EXPECT_LT(input, count.second) << op_name(op);
    }
}

bool accepts(GraphMaker& g, OpKind op, std::vector<ValueId> inputs, Attributes attributes, int input, const Shape& shape,
             const Strides& strides) {
  g.build.add_multi(op, std::move(inputs), std::move(attributes));
  return op_def(op).accepts(g.graph, g.graph.nodes.back(), input, shape, strides);
}

TEST(Definitions, MatmulAcceptsLeadingDimensions) {
  const auto ok = [](const Shape& shape, const Strides& strides) {
    GraphMaker g;
    return accepts(g, OpKind::matmul, {g.input({4, 4}), g.input({4, 4})}, {}, 0, shape, strides);
  };
  EXPECT_TRUE(ok({3, 4}, {4, 1}));
  EXPECT_TRUE(ok({3, 4}, {9, 1}));
  EXPECT_TRUE(ok({3, 4}, {1, 3}));
  EXPECT_TRUE(ok({2, 3, 4}, {0, 4, 1}));
  EXPECT_TRUE(ok({3, 1}, {5, 7}));
  EXPECT_TRUE(ok({4}, {1}));
  EXPECT_FALSE(ok({4}, {2}));
  EXPECT_FALSE(ok({3, 4}, {0, 1}));
  EXPECT_FALSE(ok({3, 4}, {3, 1}));
  EXPECT_FALSE(ok({3, 4}, {8, 2}));
  EXPECT_FALSE(ok({3, 4}, {-4, 1}));
}

TEST(Definitions, AttentionAcceptsTransposedHeads) {
  GraphMaker g;
  const ValueId q = g.input({2, 4, 3, 8});
  const Attributes attributes = {{Attr::scale, 1.0}, {Attr::causal, int64_t{0}}};
  const auto ok = [&](int input, const Shape& shape, const Strides& strides) {
    return accepts(g, OpKind::attention, {q, q, q}, attributes, input, shape, strides);
  };
  EXPECT_TRUE(ok(0, {2, 4, 3, 8}, {96, 8, 32, 1}));
  EXPECT_FALSE(ok(0, {2, 4, 3, 8}, {96, 24, 1, 3}));
  EXPECT_FALSE(ok(0, {2, 4, 3, 8}, {96, 24, 8, 0}));
  EXPECT_TRUE(ok(3, {2, 4, 3, 3}, {0, 0, 1, 0}));
  EXPECT_TRUE(ok(3, {2, 4, 3, 3}, {9, 0, 3, 1}));
  EXPECT_FALSE(ok(3, {2, 4, 3, 3}, {9, 0, 1, 3}));
}

TEST(Definitions, RowKernelsTakeContiguousOperandsOnly) {
  for (const OpKind op :
       {OpKind::softmax, OpKind::layer_norm, OpKind::rms_norm, OpKind::cross_entropy, OpKind::gather, OpKind::gather_grad})
    EXPECT_EQ(op_def(op).accepts, nullptr) << op_name(op);
  for (const OpKind op :
       {OpKind::add, OpKind::exp, OpKind::where, OpKind::copy, OpKind::concat, OpKind::reduce_sum, OpKind::elementwise, OpKind::slice_grad})
    EXPECT_NE(op_def(op).accepts, nullptr) << op_name(op);
}

TEST(Definitions, WorkspaceFollowsTheSharedFormulas) {
  GraphMaker g;
  const ValueId q = g.input({2, 4, 100, 16});
  const Attributes attributes = {{Attr::scale, 1.0}, {Attr::causal, int64_t{1}}};
  g.build.add_multi(OpKind::attention, {q, q, q}, attributes);
  const Node node = g.graph.nodes.back();
  const int64_t per_thread = (64 * 64 + 64 * 16 + 64 * 4) * 4;
  EXPECT_EQ(op_def(OpKind::attention).workspace(g.graph, node, 3), 3 * per_thread);
  EXPECT_EQ(op_def(OpKind::attention).flops(g.graph, node), 4.0 * 2 * 4 * 100 * 100 * 16 / 2);
  g.build.add_multi(OpKind::attention_grad, {q, q, q, q, node.outputs[0], node.outputs[1]}, attributes);
  const int64_t delta = workspace_round(2 * 4 * 100 * 4);
  EXPECT_EQ(op_def(OpKind::attention_grad).workspace(g.graph, g.graph.nodes.back(), 2),
            delta + 2 * (3 * 64 * 64 + 64 * 4 + 4 * 64 * 16) * 4);
  EXPECT_EQ(norm_grad_workspace(5), workspace_round(16 * 2 * 5 * 8));
}

TEST(Definitions, ChunksOfRowsCoverAllRows) {
  for (const int64_t rows : {0, 1, 15, 16, 17, 1000}) {
    EXPECT_EQ(norm_grad_chunk_start(0, rows), 0);
    EXPECT_EQ(norm_grad_chunk_start(kNormGradChunks, rows), rows);
    for (int64_t chunk = 0; chunk < kNormGradChunks; ++chunk)
      EXPECT_LE(norm_grad_chunk_start(chunk, rows), norm_grad_chunk_start(chunk + 1, rows));
  }
}

TEST(Definitions, MatmulFlops) {
  GraphMaker g;
  g.build.add(OpKind::matmul, {g.input({2, 3, 4}), g.input({4, 5})});
  EXPECT_EQ(op_def(OpKind::matmul).flops(g.graph, g.graph.nodes.back()), 2.0 * 2 * 3 * 4 * 5);
}

TEST(Elementwise, CodeIsReadBack) {
  ElementwiseCode code;
  code.constants = {-0.0, 0.1};
  code.instructions = {{OpKind::where, 0, 1, 2}, {OpKind::gelu, 3, -1, -1, 1}};
  const ElementwiseCode back = decode_elementwise(encode_elementwise(code));
  EXPECT_EQ(back.constants, code.constants);
  EXPECT_TRUE(std::signbit(back.constants[0]));
  ASSERT_EQ(back.instructions.size(), 2u);
  EXPECT_EQ(back.instructions[0].op, OpKind::where);
  EXPECT_EQ(back.instructions[0].c, 2);
  EXPECT_EQ(back.instructions[1].b, -1);
  EXPECT_EQ(back.instructions[1].approximate, 1);
}

TEST(Elementwise, CodeIsReadable) {
  ElementwiseCode code;
  code.constants = {0.5, 1e-7};
  code.instructions = {{OpKind::add, 0, 1}, {OpKind::gelu, 4, -1, -1, 1}, {OpKind::where, 5, 2, 3}};
  EXPECT_EQ(encode_elementwise(code).get_string(Attr::code), "const 0.5; const 1e-07; add 0 1; gelu:tanh 4; where 5 2 3");
}

TEST(Elementwise, RefusesWhatIsNoCode) {
  for (const char* text : {"add 0", "add 0 1 2", "add 0 x", "add 0  1", "nothing 0 1", "matmul 0 1", "tanh:tanh 0", "add 0 1;",
                           "exp 0; const 1", "const", "const 1 2"})
    EXPECT_THROW(decode_elementwise({{Attr::code, std::string(text)}}), Error) << text;
}

TEST(Elementwise, OnlyElementwiseOpsStandInAChain) {
  for (const OpKind op : {OpKind::add, OpKind::gelu_grad, OpKind::where, OpKind::is_nan, OpKind::neg})
    EXPECT_TRUE(is_elementwise(op)) << op_name(op);
  for (const OpKind op : {OpKind::cast, OpKind::matmul, OpKind::reduce_sum, OpKind::elementwise, OpKind::copy})
    EXPECT_FALSE(is_elementwise(op)) << op_name(op);
}

}  // namespace
}  // namespace zeroplan
