// The reference evaluators against numbers known from elsewhere.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops/elementwise.h"
#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

using Ints = std::vector<int64_t>;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Evaluate, IntegersAreExact) {
  GraphMaker g;
  const int64_t large = (int64_t{1} << 53) + 1;
  const ValueId a = g.ints({3}, {large, -7, 7}), b = g.ints({3}, {1, 2, -2});
  EXPECT_THAT(g.evaluate(OpKind::add, {a, b})[0].to_ints(), ElementsAre(large + 1, -5, 5));
  EXPECT_THAT(g.evaluate(OpKind::div, {a, b})[0].to_ints(), ElementsAre(large, -3, -3));
  EXPECT_THAT(g.evaluate(OpKind::pow, {g.ints({4}, {3, -2, 2, 0}), g.ints({4}, {39, 63, -1, 0})})[0].to_ints(),
              ElementsAre(4052555153018976267, std::numeric_limits<int64_t>::min(), 0, 1));
  EXPECT_THAT(doubles(g.evaluate(OpKind::greater, {a, g.ints({}, {large - 1})})[0]), ElementsAre(1, 0, 0));
  EXPECT_THAT(
      g.evaluate(OpKind::where, {g.evaluate(OpKind::equal, {a, a}).size() ? g.graph.nodes.back().outputs[0] : kNone, a, b})[0].to_ints(),
      ElementsAre(large, -7, 7));
}

TEST(Evaluate, IntegerDivisionByZeroIsAnError) {
  GraphMaker g;
  EXPECT_THROW(g.evaluate(OpKind::div, {g.ints({1}, {3}), g.ints({1}, {0})}), Error);
}

TEST(Evaluate, Activations) {
  GraphMaker g;
  const ValueId x = g.reals({3}, {-1, 0, 2});
  const auto near = [](double a, double b, double c) { return ElementsAre(DoubleNear(a, 1e-9), DoubleNear(b, 1e-9), DoubleNear(c, 1e-9)); };
  EXPECT_THAT(doubles(g.evaluate(OpKind::gelu, {x})[0]), near(-0.15865525393145707, 0, 1.9544997361036416));
  EXPECT_THAT(doubles(g.evaluate(OpKind::gelu, {x}, {{Attr::approximate, int64_t{1}}})[0]),
              near(-0.15880800939172324, 0, 1.9545976940877752));
  EXPECT_THAT(doubles(g.evaluate(OpKind::silu, {x})[0]), near(-0.2689414213699951, 0, 1.7615941559557649));
  EXPECT_THAT(doubles(g.evaluate(OpKind::relu, {x})[0]), ElementsAre(0, 0, 2));
}

TEST(Evaluate, NanIsNotLost) {
  GraphMaker g;
  const double nan = std::nan("");
  for (const OpKind op : {OpKind::maximum, OpKind::minimum}) {
    EXPECT_TRUE(std::isnan(g.evaluate(op, {g.reals({}, {nan}), g.reals({}, {1})})[0].get(0)));
    EXPECT_TRUE(std::isnan(g.evaluate(op, {g.reals({}, {1}), g.reals({}, {nan})})[0].get(0)));
  }
  EXPECT_TRUE(std::isnan(g.evaluate(OpKind::relu, {g.reals({}, {nan})})[0].get(0)));
  const Attributes all = {{Attr::axes, Ints{0}}, {Attr::keepdims, int64_t{0}}};
  EXPECT_TRUE(std::isnan(g.evaluate(OpKind::reduce_max, {g.reals({3}, {1, nan, 2})}, all)[0].get(0)));
}

TEST(Evaluate, CastTruncatesAndTests) {
  GraphMaker g;
  const ValueId x = g.reals({4}, {-1.9, 0, 0.5, 7.99});
  EXPECT_THAT(g.evaluate(OpKind::cast, {x}, {{Attr::dtype, dtype_value(DType::i64)}})[0].to_ints(), ElementsAre(-1, 0, 0, 7));
  EXPECT_THAT(doubles(g.evaluate(OpKind::cast, {x}, {{Attr::dtype, dtype_value(DType::boolean)}})[0]), ElementsAre(1, 0, 1, 1));
}

TEST(Evaluate, Reductions) {
  GraphMaker g;
  const ValueId x = g.reals({2, 3}, {1, 2, 3, 4, 5, 9});
  const Attributes rows = {{Attr::axes, Ints{1}}, {Attr::keepdims, int64_t{0}}},
                   columns = {{Attr::axes, Ints{0}}, {Attr::keepdims, int64_t{1}}};
  EXPECT_THAT(doubles(g.evaluate(OpKind::reduce_sum, {x}, rows)[0]), ElementsAre(6, 18));
  EXPECT_THAT(doubles(g.evaluate(OpKind::reduce_mean, {x}, columns)[0]), ElementsAre(2.5, 3.5, 6));
  EXPECT_THAT(doubles(g.evaluate(OpKind::reduce_max, {x}, rows)[0]), ElementsAre(3, 9));
}

TEST(Evaluate, ViewsAndMovement) {
  GraphMaker g;
  const ValueId x = g.ints({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(g.evaluate(OpKind::transpose, {x}, {{Attr::permutation, Ints{1, 0}}})[0].to_ints(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(g.evaluate(OpKind::broadcast, {g.ints({2, 1}, {7, 8})}, {{Attr::shape, Ints{2, 2, 2}}})[0].to_ints(),
              ElementsAre(7, 7, 8, 8, 7, 7, 8, 8));
  const Attributes part = {{Attr::shape, Ints{2, 2}}, {Attr::starts, Ints{1, 2}}, {Attr::steps, Ints{-1, -2}}};
  EXPECT_THAT(g.evaluate(OpKind::slice, {x}, part)[0].to_ints(), ElementsAre(5, 3, 2, 0));
  EXPECT_THAT(g.evaluate(OpKind::concat, {x, g.ints({2, 1}, {8, 9})}, {{Attr::axis, int64_t{1}}})[0].to_ints(),
              ElementsAre(0, 1, 2, 8, 3, 4, 5, 9));
  const Attributes whole = {{Attr::shape, Ints{4}}, {Attr::starts, Ints{3}}, {Attr::steps, Ints{-2}}};
  EXPECT_THAT(doubles(g.evaluate(OpKind::slice_grad, {g.reals({2}, {5, 6})}, whole)[0]), ElementsAre(0, 6, 0, 5));
}

TEST(Evaluate, GatherCountsNegativeIndicesFromTheEnd) {
  GraphMaker g;
  const ValueId indices = g.ints({3}, {-1, 0, -1});
  EXPECT_THAT(doubles(g.evaluate(OpKind::gather, {g.reals({3, 1}, {1, 2, 3}), indices}, {{Attr::axis, int64_t{0}}})[0]),
              ElementsAre(3, 1, 3));
  EXPECT_THAT(doubles(g.evaluate(OpKind::gather_grad, {g.reals({3, 1}, {1, 2, 3}), indices},
                                 {{Attr::axis, int64_t{0}}, {Attr::shape, Ints{3, 1}}})[0]),
              ElementsAre(2, 0, 4));
  for (const int64_t outside : {3, -4}) {
    GraphMaker bad;
    EXPECT_THROW(bad.evaluate(OpKind::gather, {bad.reals({3}, {1, 2, 3}), bad.ints({1}, {outside})}, {{Attr::axis, int64_t{0}}}), Error);
  }
}

TEST(Evaluate, FoldOps) {
  GraphMaker g;
  EXPECT_THAT(g.evaluate(OpKind::shape_of, {g.reals({2, 1}, {0, 0})})[0].to_ints(), ElementsAre(2, 1));
  EXPECT_THAT(g.evaluate(OpKind::range, {g.ints({}, {7}), g.ints({}, {0}), g.ints({}, {-3})})[0].to_ints(), ElementsAre(7, 4, 1));
  EXPECT_THAT(doubles(g.evaluate(OpKind::range, {g.reals({}, {0}), g.reals({}, {1}), g.reals({}, {0.5})})[0]), ElementsAre(0, 0.5));
  const ValueId x = g.ints({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(g.evaluate(OpKind::trilu, {x}, {{Attr::upper, int64_t{1}}})[0].to_ints(), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(g.evaluate(OpKind::trilu, {x, g.ints({}, {-1})}, {{Attr::upper, int64_t{0}}})[0].to_ints(), ElementsAre(0, 0, 0, 4, 0, 0));
  const Attributes seven = {{Attr::value, -7.0}, {Attr::shape, Ints{2}}, {Attr::dtype, dtype_value(DType::i32)}};
  EXPECT_THAT(g.evaluate(OpKind::fill, {}, seven)[0].to_ints(), ElementsAre(-7, -7));
}

TEST(Evaluate, Matmul) {
  GraphMaker g;
  const ValueId a = g.reals({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(doubles(g.evaluate(OpKind::matmul, {a, g.reals({2, 2}, {5, 6, 7, 8})})[0]), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(doubles(g.evaluate(OpKind::matmul, {g.reals({2}, {1, 1}), a})[0]), ElementsAre(4, 6));
  EXPECT_THAT(doubles(g.evaluate(OpKind::matmul, {a, g.reals({2}, {1, 1})})[0]), ElementsAre(3, 7));
}

TEST(Evaluate, SoftmaxAndCrossEntropy) {
  GraphMaker g;
  const ValueId logits = g.reals({2, 2}, {1000, 1000, 0, std::log(3)});
  EXPECT_THAT(doubles(g.evaluate(OpKind::softmax, {logits})[0]), ElementsAre(0.5, 0.5, DoubleNear(0.25, 1e-12), DoubleNear(0.75, 1e-12)));
  const auto both = g.evaluate(OpKind::cross_entropy, {logits, g.ints({2}, {1, 0})});
  EXPECT_NEAR(both[0].get(0), std::log(2) + std::log(4), 1e-12);
  EXPECT_EQ(both[1].get(0), 2);
  const auto one = g.evaluate(OpKind::cross_entropy, {logits, g.ints({2}, {1, -100})}, {{Attr::ignore_index, int64_t{-100}}});
  EXPECT_NEAR(one[0].get(0), std::log(2), 1e-12);
  EXPECT_EQ(one[1].get(0), 1);
  EXPECT_NEAR(one[2].get(1), std::log(4), 1e-12);
}

TEST(Evaluate, LabelOutsideTheClassesIsAnError) {
  GraphMaker g;
  EXPECT_THROW(g.evaluate(OpKind::cross_entropy, {g.reals({1, 2}, {0, 0}), g.ints({1}, {2})}), Error);
}

TEST(Evaluate, LayerNormHasMeanZeroAndUnitVariance) {
  GraphMaker g;
  const auto out = g.evaluate(OpKind::layer_norm, {g.reals({1, 4}, {1, 3, 5, 7}), g.reals({4}, {1, 1, 1, 2}), g.reals({4}, {0, 0, 1, 0})},
                              {{Attr::epsilon, 0.0}});
  const double unit = 1 / std::sqrt(5);
  EXPECT_THAT(doubles(out[0]), ElementsAre(DoubleNear(-3 * unit, 1e-12), DoubleNear(-unit, 1e-12), DoubleNear(unit + 1, 1e-12),
                                           DoubleNear(6 * unit, 1e-12)));
  EXPECT_EQ(out[1].get(0), 4);
  EXPECT_NEAR(out[2].get(0), unit, 1e-12);
  const auto rms = g.evaluate(OpKind::rms_norm, {g.reals({1, 2}, {3, 4}), g.reals({2}, {1, 2})}, {{Attr::epsilon, 0.0}});
  EXPECT_NEAR(rms[0].get(1), 8 / std::sqrt(12.5), 1e-12);
}

TEST(Evaluate, CausalAttentionSeesTheLastKeysToo) {
  GraphMaker g;
  const ValueId q = g.reals({1, 1, 2, 1}, {0, 0}), k = g.reals({1, 1, 3, 1}, {1, 2, 3}), v = g.reals({1, 1, 3, 1}, {1, 3, 8});
  const auto out = g.evaluate(OpKind::attention, {q, k, v}, {{Attr::scale, 1.0}, {Attr::causal, int64_t{1}}});
  EXPECT_THAT(doubles(out[0]), ElementsAre(DoubleNear(2, 1e-12), DoubleNear(4, 1e-12)));
  EXPECT_THAT(doubles(out[1]), ElementsAre(DoubleNear(std::log(2), 1e-12), DoubleNear(std::log(3), 1e-12)));
}

TEST(Evaluate, QueryWithoutKeysGivesZero) {
  GraphMaker g;
  const ValueId x = g.reals({1, 1, 2, 1}, {1, 2});
  const auto out =
      g.evaluate(OpKind::attention, {x, x, x, g.reals({2, 1}, {-kInfinity, 0})}, {{Attr::scale, 1.0}, {Attr::causal, int64_t{0}}});
  EXPECT_EQ(out[0].get(0), 0);
  EXPECT_EQ(out[1].get(0), -kInfinity);
  EXPECT_GT(out[0].get(1), 1);
}

TEST(Evaluate, ElementwiseChainEqualsItsOps) {
  GraphMaker g;
  const ValueId x = g.reals({2, 2}, {1, -2, 3, -4}), b = g.reals({2}, {1, 2});
  ElementwiseCode code;
  code.constants = {2};
  code.instructions = {{OpKind::mul, 0, 2}, {OpKind::add, 3, 1}, {OpKind::greater, 4, 2}, {OpKind::where, 5, 4, 0}};
  EXPECT_THAT(doubles(g.evaluate(OpKind::elementwise, {x, b}, encode_elementwise(code))[0]), ElementsAre(3, -2, 7, -4));
}

TEST(Evaluate, ProgramsRunTheirOwnNodesOnly) {
  GraphMaker g;
  const ValueId x = g.input({1}, DType::f64);
  const ValueId y = g.build.add(OpKind::neg, {x});
  g.build.program = Program::eval_step;
  const ValueId z = g.build.add(OpKind::neg, {x});
  std::map<ValueId, HostTensor> values = {{x, HostTensor::of(DType::f64, {1}, std::vector<double>{3})}};
  evaluate_program(g.graph, Program::micro_step, values);
  EXPECT_EQ(values.at(y).get(0), -3);
  EXPECT_FALSE(values.contains(z));
  values.clear();
  EXPECT_THROW(evaluate_program(g.graph, Program::eval_step, values), Error);
}

}  // namespace
}  // namespace zeroplan
