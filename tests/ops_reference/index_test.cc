// gather with shared axes, scatter, cumsum, arg_max, top_k: what they refuse, and numbers known from elsewhere.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

using Ints = std::vector<int64_t>;
using testing::ElementsAre;
using testing::HasSubstr;

Attributes by(const char* reduction) { return {{Attr::reduction, std::string(reduction)}}; }
Attributes shared(int64_t axis, Ints axes) { return {{Attr::axis, axis}, {Attr::axes, std::move(axes)}}; }
Attributes best(int64_t axis, int64_t k) { return {{Attr::axis, axis}, {Attr::k, k}, {Attr::largest, int64_t{1}}}; }

TEST(IndexOps, GatherWithSharedAxes) {
  GraphMaker g;
  const ValueId table = g.input({2, 5, 3, 4}), indices = g.input({2, 6}, DType::i64);
  EXPECT_EQ(g.shape(OpKind::gather, {table, indices}, shared(1, {0})), (Shape{2, 6, 3, 4}));
  EXPECT_EQ(g.shape(OpKind::gather, {table, indices}, shared(2, {0})), (Shape{2, 5, 6, 4}));
  EXPECT_THAT(g.refusal(OpKind::gather, {table, indices}, shared(0, {0})), HasSubstr("do not share 1 leading axes"));
  EXPECT_THAT(g.refusal(OpKind::gather, {table, g.input({3, 6}, DType::i64)}, shared(1, {0})), HasSubstr("do not share"));
  EXPECT_THAT(g.refusal(OpKind::gather, {table, indices}, shared(2, {1})), HasSubstr("must be the leading ones"));
  EXPECT_THAT(doubles(g.evaluate(OpKind::gather, {g.reals({2, 2}, {1, 2, 3, 4}), g.ints({2, 1}, {1, -2})}, shared(1, {0}))[0]),
              ElementsAre(2, 3));
}

TEST(IndexOps, ScatterChecksItsOperands) {
  GraphMaker g;
  const ValueId data = g.input({2, 5, 3}), indices = g.input({2, 4}, DType::i64), updates = g.input({2, 4, 3});
  EXPECT_EQ(g.shape(OpKind::scatter, {data, indices, updates}, by("add")), (Shape{2, 5, 3}));
  EXPECT_THAT(g.refusal(OpKind::scatter, {data, indices, updates}, by("mean")), HasSubstr("reduction 'mean' is unknown"));
  EXPECT_THAT(g.refusal(OpKind::scatter, {data, indices, g.input({2, 4, 2})}, by("add")), HasSubstr("expected [2,4,3]"));
  EXPECT_THAT(g.refusal(OpKind::scatter, {data, g.input({3, 4}, DType::i64), updates}, by("add")), HasSubstr("expected [2,4]"));
  EXPECT_THAT(g.refusal(OpKind::scatter, {data, g.input({2, 4}), updates}, by("add")), HasSubstr("int32 or int64"));
  const ValueId flags = g.input({4}, DType::boolean), one = g.input({1}, DType::i64);
  EXPECT_THAT(g.refusal(OpKind::scatter, {flags, one, g.input({1}, DType::boolean)}, by("add")), HasSubstr("insert a cast"));
  EXPECT_EQ(g.shape(OpKind::scatter, {flags, one, g.input({1}, DType::boolean)}, by("none")), (Shape{4}));
}

TEST(IndexOps, ScatterKeepsTheOrderAndTheNan) {
  GraphMaker g;
  const ValueId data = g.reals({3}, {1, 2, 3}), twice = g.ints({3}, {0, -3, 2});
  EXPECT_THAT(doubles(g.evaluate(OpKind::scatter, {data, twice, g.reals({3}, {7, 8, 9})}, by("none"))[0]), ElementsAre(8, 2, 9));
  const auto largest = g.evaluate(OpKind::scatter, {data, twice, g.reals({3}, {std::nan(""), 8, 9})}, by("max"));
  EXPECT_TRUE(std::isnan(largest[0].get(0)));
  for (const int64_t outside : {3, -4}) {
    GraphMaker bad;
    EXPECT_THROW(bad.evaluate(OpKind::scatter, {bad.reals({3}, {1, 2, 3}), bad.ints({1}, {outside}), bad.reals({1}, {0})}, by("add")),
                 Error);
  }
}

TEST(IndexOps, EqualExtremesShareTheGradient) {
  GraphMaker g;
  const ValueId data = g.reals({2}, {5, 1}), indices = g.ints({3}, {0, 0, 1}), updates = g.reals({3}, {5, 4, 0});
  g.build.add(OpKind::scatter, {data, indices, updates}, by("max"));
  const Node node = g.graph.nodes.back();
  VjpContext context(g.build, node, {g.reals({2}, {3, 7})}, {true, false, true});
  op_def(node.op).vjp(context);
  std::map<ValueId, HostTensor> values;
  evaluate_program(g.graph, Program::micro_step, values);
  EXPECT_THAT(doubles(values.at(context.gradients()[0])), ElementsAre(1.5, 7));
  EXPECT_THAT(doubles(values.at(context.gradients()[2])), ElementsAre(1.5, 0, 0));
}

TEST(IndexOps, AlongAnAxis) {
  GraphMaker g;
  const ValueId x = g.input({2, 3});
  EXPECT_EQ(g.shape(OpKind::cumsum, {x}, {{Attr::axis, int64_t{-1}}}), (Shape{2, 3}));
  EXPECT_THAT(g.refusal(OpKind::cumsum, {g.input({2}, DType::boolean)}, {{Attr::axis, int64_t{0}}}), HasSubstr("must be floating-point"));
  EXPECT_NE(g.refusal(OpKind::cumsum, {x}, {{Attr::axis, int64_t{2}}}), "");
  EXPECT_EQ(g.shape(OpKind::arg_max, {x}, {{Attr::axis, int64_t{0}}}), (Shape{3}));
  EXPECT_EQ(g.shape(OpKind::arg_max, {x}, {{Attr::axis, int64_t{0}}, {Attr::keepdims, int64_t{1}}}), (Shape{1, 3}));
  EXPECT_THAT(g.refusal(OpKind::arg_max, {g.input({2, 0})}, {{Attr::axis, int64_t{1}}}), HasSubstr("nothing along axis 1"));
  EXPECT_EQ(g.infer(OpKind::top_k, {x}, best(1, 2))[1].shape, (Shape{2, 2}));
  EXPECT_EQ(g.infer(OpKind::top_k, {x}, best(1, 2))[1].dtype, DType::i64);
  EXPECT_THAT(g.refusal(OpKind::top_k, {x}, best(1, 4)), HasSubstr("k is 4"));
}

TEST(IndexOps, SumsAndProductsOfIntegersWrap) {
  GraphMaker g;
  const int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(g.evaluate(OpKind::cumsum, {g.ints({2}, {large, 1})}, {{Attr::axis, int64_t{0}}})[0].to_ints(),
              ElementsAre(large, std::numeric_limits<int64_t>::min()));
  EXPECT_THAT(g.evaluate(OpKind::reduce_prod, {g.ints({2}, {large, 2})}, {{Attr::axes, Ints{0}}})[0].to_ints(), ElementsAre(-2));
}

TEST(IndexOps, TopKAndArgMaxPutNanFirst) {
  GraphMaker g;
  const ValueId x = g.reals({4}, {1, 7, std::nan(""), 7});
  EXPECT_THAT(g.evaluate(OpKind::top_k, {x}, best(0, 3))[1].to_ints(), ElementsAre(2, 1, 3));
  EXPECT_THAT(g.evaluate(OpKind::arg_max, {x}, {{Attr::axis, int64_t{0}}})[0].to_ints(), ElementsAre(2));
}

}  // namespace
}  // namespace zeroplan
