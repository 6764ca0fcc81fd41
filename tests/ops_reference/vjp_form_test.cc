// What the vjps build: the forms that later passes rely on, and the gradients that they refuse.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

// Applies the vjp of the last node with a gradient for its output 0 (and `extra` for output 1).
std::vector<ValueId> apply_vjp(GraphMaker& g, std::vector<bool> needs, ValueId extra = kNone) {
  const Node node = g.graph.nodes.back();
  std::vector<ValueId> gradients(node.outputs.size(), kNone);
  gradients[0] = g.input(g.graph.value(node.outputs[0]).shape);
  if (gradients.size() > 1) gradients[1] = extra;
  VjpContext context(g.build, node, gradients, std::move(needs));
  op_def(node.op).vjp(context);
  return context.gradients();
}

int count(const Graph& graph, OpKind op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == op; }));
}

const Node& producer(const Graph& graph, ValueId id) { return graph.nodes.at(graph.value(id).producer); }

TEST(VjpForm, WeightGradientIsOneFlatProduct) {
  GraphMaker g;
  g.build.add(OpKind::matmul, {g.input({2, 3, 4}), g.input({4, 5})});
  const std::vector<ValueId> gradients = apply_vjp(g, {false, true});
  EXPECT_EQ(gradients[0], kNone);
  const Node& product = producer(g.graph, gradients[1]);
  EXPECT_EQ(product.op, OpKind::matmul);
  EXPECT_EQ(g.graph.value(product.inputs[1]).shape, (Shape{6, 5}));
  EXPECT_EQ(count(g.graph, OpKind::matmul), 2);
  EXPECT_EQ(count(g.graph, OpKind::reduce_sum), 0);
}

TEST(VjpForm, GradientOfATransposedWeightIsNoView) {
  GraphMaker g;
  const ValueId weight = g.input({5, 4});
  const ValueId transposed = g.build.transpose_last_two(weight);
  const Node transpose = g.graph.nodes.back();
  g.build.add(OpKind::matmul, {g.input({2, 3, 4}), transposed});
  const ValueId gradient = apply_vjp(g, {false, true})[1];
  VjpContext context(g.build, transpose, {gradient}, {true});
  op_def(OpKind::transpose).vjp(context);
  EXPECT_EQ(producer(g.graph, context.gradients()[0]).op, OpKind::matmul);
  EXPECT_EQ(g.graph.value(context.gradients()[0]).shape, (Shape{5, 4}));
}

TEST(VjpForm, RoundingIsPassedStraightThroughWhereAsked) {
  for (const OpKind op : {OpKind::ceil, OpKind::floor, OpKind::round}) {
    GraphMaker g;
    g.build.add(op, {g.input({3})});
    EXPECT_EQ(apply_vjp(g, {true})[0], kNone);
    g.build.add(op, {g.input({3})}, {{Attr::straight_through, int64_t{1}}});
    const ValueId gradient = apply_vjp(g, {true})[0];
    EXPECT_EQ(gradient, static_cast<ValueId>(g.graph.values.size()) - 1);  // dy itself
  }
}

TEST(VjpForm, SquareNeedsNoPower) {
  GraphMaker g;
  g.build.add(OpKind::pow, {g.input({3}), g.reals({}, {2}, DType::f32)});
  apply_vjp(g, {true, false});
  EXPECT_EQ(count(g.graph, OpKind::pow), 1);
  EXPECT_EQ(count(g.graph, OpKind::log), 0);
}

TEST(VjpForm, UnneededGradientsAreNotBuilt) {
  GraphMaker g;
  g.build.add(OpKind::mul, {g.input({3}), g.input({3})});
  const size_t before = g.graph.nodes.size();
  const std::vector<ValueId> gradients = apply_vjp(g, {true, false});
  EXPECT_NE(gradients[0], kNone);
  EXPECT_EQ(gradients[1], kNone);
  EXPECT_EQ(g.graph.nodes.size(), before + 1);
}

TEST(VjpForm, SavedNumbersHaveNoGradient) {
  GraphMaker norm;
  norm.build.add_multi(OpKind::layer_norm, {norm.input({3, 4}), norm.input({4})}, {{Attr::epsilon, 1e-5}});
  EXPECT_THROW(apply_vjp(norm, {true, true}, norm.input({3, 1})), Error);
  GraphMaker rms;
  rms.build.add_multi(OpKind::rms_norm, {rms.input({3, 4}), rms.input({4})}, {{Attr::epsilon, 1e-5}});
  EXPECT_THROW(apply_vjp(rms, {true, true}, rms.input({3, 1})), Error);
}

TEST(VjpForm, EqualMaximaShareTheGradient) {
  GraphMaker g;
  const ValueId x = g.reals({3}, {4, 1, 4});
  g.build.add(OpKind::reduce_max, {x}, {{Attr::axes, std::vector<int64_t>{0}}, {Attr::keepdims, int64_t{0}}});
  const Node node = g.graph.nodes.back();
  VjpContext context(g.build, node, {g.build.scalar(3, DType::f64)}, {true});
  op_def(OpKind::reduce_max).vjp(context);
  std::map<ValueId, HostTensor> values;
  evaluate_program(g.graph, Program::micro_step, values);
  EXPECT_EQ(doubles(values.at(context.gradients()[0])), (std::vector<double>{1.5, 0, 1.5}));
}

}  // namespace
}  // namespace zeroplan
