// Shape and type rules, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops/elementwise.h"
#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using Ints = std::vector<int64_t>;

Attributes axes(Ints axes, int64_t keepdims = 0) { return {{Attr::axes, std::move(axes)}, {Attr::keepdims, keepdims}}; }
Attributes slice(Shape shape, Ints starts, Ints steps) {
  return {{Attr::shape, std::move(shape)}, {Attr::starts, std::move(starts)}, {Attr::steps, std::move(steps)}};
}

TEST(Infer, UnaryKeepsShapeAndType) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::exp, {g.input({2, 3})}), (Shape{2, 3}));
  EXPECT_EQ(g.infer(OpKind::is_nan, {g.input({2})})[0].dtype, DType::boolean);
  EXPECT_EQ(g.infer(OpKind::cast, {g.input({2})}, {{Attr::dtype, dtype_value(DType::i32)}})[0].dtype, DType::i32);
  EXPECT_THAT(g.refusal(OpKind::exp, {g.input({2}, DType::i64)}), HasSubstr("must be floating-point"));
  EXPECT_THAT(g.refusal(OpKind::neg, {g.input({2}, DType::boolean)}), HasSubstr("bool"));
  EXPECT_THAT(g.refusal(OpKind::logical_not, {g.input({2})}), HasSubstr("expected bool"));
  EXPECT_THAT(g.refusal(OpKind::exp, {kNone}), HasSubstr("missing"));
  EXPECT_THAT(g.refusal(OpKind::exp, {}), HasSubstr("takes 1 inputs"));
}

TEST(Infer, ErrorsNameOperatorAndNode) {
  GraphMaker g;
  const std::string message = g.refusal(OpKind::exp, {g.input({2}, DType::i64)});
  EXPECT_THAT(message, HasSubstr("the_node"));
  EXPECT_THAT(message, HasSubstr("exp"));
}

TEST(Infer, BinaryBroadcasts) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::add, {g.input({4, 1}), g.input({3, 1, 5})}), (Shape{3, 4, 5}));
  EXPECT_EQ(g.shape(OpKind::mul, {g.input({}), g.input({2})}), (Shape{2}));
  EXPECT_EQ(g.infer(OpKind::less, {g.input({2}, DType::i64), g.input({1}, DType::i64)})[0].dtype, DType::boolean);
  EXPECT_NE(g.refusal(OpKind::add, {g.input({2}), g.input({3})}), "");
  EXPECT_THAT(g.refusal(OpKind::add, {g.input({2}), g.input({2}, DType::f64)}), HasSubstr("insert a cast"));
  EXPECT_THAT(g.refusal(OpKind::add, {g.input({2}, DType::boolean), g.input({2}, DType::boolean)}), HasSubstr("bool"));
  EXPECT_THAT(g.refusal(OpKind::logical_and, {g.input({2}), g.input({2})}), HasSubstr("expected bool"));
  EXPECT_THAT(g.refusal(OpKind::gelu_grad, {g.input({2}, DType::i64), g.input({2}, DType::i64)}), HasSubstr("must be floating-point"));
}

TEST(Infer, Where) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::where, {g.input({1, 5}, DType::boolean), g.input({2, 3, 1}), g.input({})}), (Shape{2, 3, 5}));
  EXPECT_THAT(g.refusal(OpKind::where, {g.input({2}), g.input({2}), g.input({2})}), HasSubstr("condition"));
  EXPECT_THAT(g.refusal(OpKind::where, {g.input({2}, DType::boolean), g.input({2}), g.input({2}, DType::i64)}),
              HasSubstr("expected float32"));
}

TEST(Infer, ElementwiseChecksItsCode) {
  GraphMaker g;
  ElementwiseCode code;
  code.instructions = {{OpKind::add, 0, 1}};
  EXPECT_EQ(g.shape(OpKind::elementwise, {g.input({2, 1}), g.input({3})}, encode_elementwise(code)), (Shape{2, 3}));
  EXPECT_THAT(g.refusal(OpKind::elementwise, {g.input({2})}, encode_elementwise(code)), HasSubstr("register 1"));
  EXPECT_THAT(g.refusal(OpKind::elementwise, {g.input({2}, DType::boolean), g.input({2}, DType::boolean)}, encode_elementwise(code)),
              HasSubstr("floating-point operand"));
  code.instructions = {{OpKind::matmul, 0, 1}};
  EXPECT_THAT(g.refusal(OpKind::elementwise, {g.input({2}), g.input({2})}, encode_elementwise(code)), HasSubstr("operator"));
  code.instructions = {{OpKind::less, 0, 1}};
  EXPECT_THAT(g.refusal(OpKind::elementwise, {g.input({2}), g.input({2})}, encode_elementwise(code)), HasSubstr("bool"));
  EXPECT_THAT(g.refusal(OpKind::elementwise, {g.input({2})}, encode_elementwise({})), HasSubstr("no instructions"));
}

TEST(Infer, ReduceDropsOrKeepsAxes) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::reduce_sum, {g.input({2, 3, 4})}, axes({0, 2})), (Shape{3}));
  EXPECT_EQ(g.shape(OpKind::reduce_max, {g.input({2, 3, 4})}, axes({0, 2}, 1)), (Shape{1, 3, 1}));
  EXPECT_EQ(g.shape(OpKind::reduce_mean, {g.input({2})}, axes({0})), (Shape{}));
  EXPECT_THAT(g.refusal(OpKind::reduce_sum, {g.input({2, 3})}, axes({1, 0})), HasSubstr("must rise"));
  EXPECT_THAT(g.refusal(OpKind::reduce_sum, {g.input({2, 3})}, axes({2})), HasSubstr("axes [2]"));
  EXPECT_THAT(g.refusal(OpKind::reduce_sum, {g.input({2, 3})}, axes({-1})), HasSubstr("axes [-1]"));
  EXPECT_THAT(g.refusal(OpKind::reduce_mean, {g.input({2}, DType::i64)}, axes({0})), HasSubstr("must be floating-point"));
  EXPECT_THAT(g.refusal(OpKind::reduce_max, {g.input({0, 2})}, axes({0})), HasSubstr("no elements"));
}

TEST(Infer, Movement) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::concat, {g.input({2, 3}), g.input({2, 1})}, {{Attr::axis, int64_t{-1}}}), (Shape{2, 4}));
  EXPECT_THAT(g.refusal(OpKind::concat, {g.input({2, 3}), g.input({1, 1})}, {{Attr::axis, int64_t{1}}}), HasSubstr("expected [2,1]"));
  EXPECT_THAT(g.refusal(OpKind::concat, {g.input({2}), g.input({2}, DType::i64)}, {{Attr::axis, int64_t{0}}}),
              HasSubstr("expected float32"));
  EXPECT_THAT(g.refusal(OpKind::concat, {}, {{Attr::axis, int64_t{0}}}), HasSubstr("at least one"));
  EXPECT_EQ(g.shape(OpKind::slice_grad, {g.input({2, 2})}, slice({4, 6}, {1, 5}, {2, -3})), (Shape{4, 6}));
  EXPECT_THAT(g.refusal(OpKind::slice_grad, {g.input({2, 2})}, slice({4, 6}, {3, 0}, {1, 1})), HasSubstr("axis 0"));
  EXPECT_THAT(g.refusal(OpKind::fill, {}, {{Attr::value, 0.0}, {Attr::shape, Ints{-1}}, {Attr::dtype, dtype_value(DType::f32)}}),
              HasSubstr("negative"));
}

TEST(Infer, Gather) {
  GraphMaker g;
  const ValueId table = g.input({5, 3, 2}), indices = g.input({4, 6}, DType::i64);
  EXPECT_EQ(g.shape(OpKind::gather, {table, indices}, {{Attr::axis, int64_t{1}}}), (Shape{5, 4, 6, 2}));
  EXPECT_EQ(g.shape(OpKind::gather, {table, g.input({}, DType::i32)}, {{Attr::axis, int64_t{-1}}}), (Shape{5, 3}));
  EXPECT_THAT(g.refusal(OpKind::gather, {table, g.input({2})}, {{Attr::axis, int64_t{0}}}), HasSubstr("int32 or int64"));
  EXPECT_NE(g.refusal(OpKind::gather, {table, indices}, {{Attr::axis, int64_t{3}}}), "");
  EXPECT_THAT(g.refusal(OpKind::gather, {g.input({}), indices}, {{Attr::axis, int64_t{0}}}), HasSubstr("rank"));
  EXPECT_THAT(g.refusal(OpKind::gather_grad, {g.input({4, 6, 3}), indices}, {{Attr::axis, int64_t{0}}, {Attr::shape, Ints{5, 2}}}),
              HasSubstr("expected [4,6,2]"));
}

TEST(Infer, Views) {
  GraphMaker g;
  const ValueId x = g.input({2, 3, 4});
  EXPECT_EQ(g.shape(OpKind::transpose, {x}, {{Attr::permutation, Ints{2, 0, 1}}}), (Shape{4, 2, 3}));
  EXPECT_THAT(g.refusal(OpKind::reshape, {x}, {{Attr::shape, Ints{5, 5}}}), HasSubstr("cannot take the shape [5,5]"));
  EXPECT_THAT(g.refusal(OpKind::reshape, {x}, {{Attr::shape, Ints{-1, -24}}}), HasSubstr("cannot take"));
  for (const Ints& wrong : {Ints{0, 1}, Ints{0, 1, 1}, Ints{0, 1, 3}, Ints{0, 1, 2, 3}})
    EXPECT_THAT(g.refusal(OpKind::transpose, {x}, {{Attr::permutation, wrong}}), HasSubstr("not a permutation"));
  EXPECT_THAT(g.refusal(OpKind::broadcast, {x}, {{Attr::shape, Ints{3, 4}}}), HasSubstr("does not broadcast"));
  EXPECT_THAT(g.refusal(OpKind::broadcast, {x}, {{Attr::shape, Ints{1, 3, 4}}}), HasSubstr("does not broadcast"));
  EXPECT_THAT(g.refusal(OpKind::slice, {x}, slice({2, 3, 2}, {0, 0, 3}, {1, 1, 1})), HasSubstr("axis 2"));
  EXPECT_THAT(g.refusal(OpKind::slice, {x}, slice({2, 3}, {0, 0}, {1, 1})), HasSubstr("one entry per axis"));
}

TEST(Infer, Matmul) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::matmul, {g.input({2, 1, 3, 4}), g.input({5, 4, 6})}), (Shape{2, 5, 3, 6}));
  EXPECT_EQ(g.shape(OpKind::matmul, {g.input({4}), g.input({5, 4, 6})}), (Shape{5, 6}));
  EXPECT_EQ(g.shape(OpKind::matmul, {g.input({2, 3, 4}), g.input({4})}), (Shape{2, 3}));
  EXPECT_EQ(g.shape(OpKind::matmul, {g.input({4}), g.input({4})}), (Shape{}));
  EXPECT_THAT(g.refusal(OpKind::matmul, {g.input({3, 4}), g.input({3, 4})}), HasSubstr("summed over"));
  EXPECT_THAT(g.refusal(OpKind::matmul, {g.input({}), g.input({3, 4})}), HasSubstr("rank"));
  EXPECT_THAT(g.refusal(OpKind::matmul, {g.input({3, 4}, DType::i64), g.input({4, 3}, DType::i64)}), HasSubstr("must be floating-point"));
  EXPECT_NE(g.refusal(OpKind::matmul, {g.input({2, 3, 4}), g.input({3, 4, 3})}), "");
}

TEST(Infer, Rows) {
  GraphMaker g;
  const ValueId x = g.input({2, 3, 5});
  const Attributes epsilon = {{Attr::epsilon, 1e-5}};
  const auto norm = g.infer(OpKind::layer_norm, {x, g.input({5}), kNone}, epsilon);
  ASSERT_EQ(norm.size(), 3u);
  EXPECT_EQ(norm[1].shape, (Shape{2, 3, 1}));
  EXPECT_EQ(g.infer(OpKind::rms_norm, {x, g.input({5})}, epsilon)[1].shape, (Shape{2, 3, 1}));
  EXPECT_THAT(g.refusal(OpKind::layer_norm, {x, g.input({3})}, epsilon), HasSubstr("gamma"));
  EXPECT_THAT(g.refusal(OpKind::layer_norm, {x, g.input({5}), g.input({5}, DType::f64)}, epsilon), HasSubstr("beta"));
  EXPECT_THAT(g.refusal(OpKind::rms_norm, {x, g.input({5, 1})}, epsilon), HasSubstr("gamma"));
  EXPECT_THAT(g.refusal(OpKind::rms_norm_grad, {x, x, g.input({5}), g.input({2, 3})}), HasSubstr("rstd"));
  EXPECT_THAT(g.refusal(OpKind::layer_norm_grad, {x, x, g.input({5}), g.input({2, 3, 1}), g.input({2, 3})}), HasSubstr("rstd"));
  EXPECT_THAT(g.refusal(OpKind::softmax, {g.input({})}), HasSubstr("rank"));
  EXPECT_THAT(g.refusal(OpKind::softmax_grad, {x, g.input({2, 3, 4})}), HasSubstr("expected [2,3,5]"));
}

TEST(Infer, CrossEntropy) {
  GraphMaker g;
  const ValueId logits = g.input({6, 5}), labels = g.input({6}, DType::i64);
  const auto types = g.infer(OpKind::cross_entropy, {logits, labels});
  ASSERT_EQ(types.size(), 3u);
  EXPECT_EQ(types[0].shape, (Shape{}));
  EXPECT_EQ(types[2].shape, (Shape{6}));
  EXPECT_THAT(g.refusal(OpKind::cross_entropy, {logits, g.input({5}, DType::i64)}), HasSubstr("labels"));
  EXPECT_THAT(g.refusal(OpKind::cross_entropy, {logits, g.input({6})}), HasSubstr("int32 or int64"));
  EXPECT_THAT(g.refusal(OpKind::cross_entropy, {g.input({2, 3, 5}), labels}), HasSubstr("rank 2"));
  EXPECT_THAT(g.refusal(OpKind::cross_entropy_grad, {g.input({1}), logits, labels, g.input({6})}), HasSubstr("seed"));
}

TEST(Infer, Attention) {
  GraphMaker g;
  const ValueId q = g.input({2, 4, 3, 8}), k = g.input({2, 2, 5, 8}), lse = g.input({2, 4, 3});
  const Attributes scale = {{Attr::scale, 0.5}, {Attr::causal, int64_t{0}}};
  const auto types = g.infer(OpKind::attention, {q, k, k}, scale);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].shape, (Shape{2, 4, 3, 8}));
  EXPECT_EQ(types[1].shape, (Shape{2, 4, 3}));
  EXPECT_EQ(g.refusal(OpKind::attention, {q, k, k, g.input({3, 1})}, scale), "");
  EXPECT_THAT(g.refusal(OpKind::attention, {q, k, k, g.input({4, 5})}, scale), HasSubstr("mask"));
  EXPECT_THAT(g.refusal(OpKind::attention, {q, k, k, g.input({1, 2, 4, 3, 5})}, scale), HasSubstr("mask"));
  EXPECT_THAT(g.refusal(OpKind::attention, {q, g.input({2, 3, 5, 8}), g.input({2, 3, 5, 8})}, scale), HasSubstr("multiple"));
  EXPECT_THAT(g.refusal(OpKind::attention, {q, k, g.input({2, 2, 4, 8})}, scale), HasSubstr("'in"));
  EXPECT_THAT(g.refusal(OpKind::attention, {q, g.input({2, 2, 5, 7}), k}, scale), HasSubstr("k 'in"));
  EXPECT_THAT(g.refusal(OpKind::attention_grad, {q, q, k, k, q, g.input({2, 4, 5})}, scale), HasSubstr("lse"));
  EXPECT_EQ(g.infer(OpKind::attention_grad, {q, q, k, k, q, lse}, scale).size(), 3u);
}

TEST(Infer, RangeNeedsConstants) {
  GraphMaker g;
  EXPECT_EQ(g.shape(OpKind::range, {g.ints({}, {7}), g.ints({}, {0}), g.ints({}, {-2})}), (Shape{4}));
  EXPECT_EQ(g.shape(OpKind::range, {g.ints({}, {0}), g.ints({}, {5}), g.ints({}, {-1})}), (Shape{0}));
  EXPECT_EQ(g.shape(OpKind::range, {g.reals({}, {0}), g.reals({}, {1}), g.reals({}, {0.4})}), (Shape{3}));
  EXPECT_THAT(g.refusal(OpKind::range, {g.ints({}, {0}), g.input({}, DType::i64), g.ints({}, {1})}), HasSubstr("constant"));
  EXPECT_THAT(g.refusal(OpKind::range, {g.ints({}, {0}), g.ints({}, {4}), g.ints({}, {0})}), HasSubstr("delta is 0"));
}

}  // namespace
}  // namespace zeroplan
