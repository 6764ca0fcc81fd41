// Types around 16-bit operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<DType> types(const std::vector<OutputType>& outputs) {
  std::vector<DType> result;
  for (const OutputType& output : outputs) result.push_back(output.dtype);
  return result;
}

class Halves : public testing::TestWithParam<DType> {
 protected:
  ValueId half(Shape shape) { return g.input(std::move(shape), GetParam()); }
  GraphMaker g;
};

TEST_P(Halves, StatisticsAreFloat32) {
  const DType h = GetParam(), f = DType::f32;
  const Attributes epsilon = {{Attr::epsilon, 1e-5}}, scale = {{Attr::scale, 0.5}, {Attr::causal, int64_t{0}}};
  const ValueId x = half({3, 5}), rows = g.input({3, 1}), q = half({2, 4, 3, 8}), lse = g.input({2, 4, 3});
  EXPECT_THAT(types(g.infer(OpKind::layer_norm, {x, half({5}), half({5})}, epsilon)), ElementsAre(h, f, f));
  EXPECT_THAT(types(g.infer(OpKind::layer_norm_grad, {x, x, half({5}), rows, rows})), ElementsAre(h, h, h));
  EXPECT_THAT(types(g.infer(OpKind::rms_norm, {x, half({5})}, epsilon)), ElementsAre(h, f));
  EXPECT_THAT(types(g.infer(OpKind::rms_norm_grad, {x, x, half({5}), rows})), ElementsAre(h, h));
  EXPECT_THAT(types(g.infer(OpKind::batch_norm, {x, half({5}), half({5})}, epsilon)), ElementsAre(h, f, f));
  EXPECT_THAT(types(g.infer(OpKind::batch_norm_grad, {x, x, half({5}), g.input({5}), g.input({5})}, epsilon)), ElementsAre(h, h, h));
  EXPECT_THAT(types(g.infer(OpKind::attention, {q, q, q}, scale)), ElementsAre(h, f));
  EXPECT_THAT(types(g.infer(OpKind::attention_grad, {q, q, q, q, q, lse}, scale)), ElementsAre(h, h, h));
  EXPECT_THAT(types(g.infer(OpKind::cross_entropy, {x, g.input({3}, DType::i64)})), ElementsAre(f, f, f));
  EXPECT_THAT(types(g.infer(OpKind::cross_entropy_grad, {g.input({}), x, g.input({3}, DType::i64), g.input({3})})), ElementsAre(h));
  EXPECT_THAT(g.refusal(OpKind::layer_norm_grad, {x, x, half({5}), half({3, 1}), rows}), HasSubstr("mean"));
  EXPECT_THAT(g.refusal(OpKind::layer_norm, {x, g.input({5})}, epsilon), HasSubstr("gamma"));
  EXPECT_THAT(g.refusal(OpKind::attention_grad, {q, q, q, q, q, half({2, 4, 3})}, scale), HasSubstr("lse"));
}

TEST_P(Halves, SumsAreFloat32WhereTheNodeSaysSo) {
  const Attributes sum = {{Attr::dtype, dtype_value(DType::f32)}}, wrong = {{Attr::dtype, dtype_value(DType::f64)}};
  EXPECT_THAT(types(g.infer(OpKind::matmul, {half({3, 4}), half({4, 2})})), ElementsAre(GetParam()));
  EXPECT_THAT(types(g.infer(OpKind::matmul, {half({3, 4}), half({4, 2})}, sum)), ElementsAre(DType::f32));
  EXPECT_THAT(g.refusal(OpKind::matmul, {half({3, 4}), half({4, 2})}, wrong), HasSubstr("it can be float32"));
  EXPECT_THAT(g.refusal(OpKind::matmul, {g.input({3, 4}, DType::f64), g.input({4, 2}, DType::f64)}, sum), HasSubstr("float64"));
}

TEST_P(Halves, AreNoTypeOfWhatTheStepAddsUp) {
  const ValueId metrics = g.input({4}, DType::f64);
  EXPECT_THAT(g.refusal(OpKind::record_loss, {half({}), kNone, metrics}), HasSubstr("must be float32 or float64"));
  EXPECT_THAT(g.refusal(OpKind::grad_norm, {half({64}), metrics, g.input({68}, DType::i64)}), HasSubstr("must be float32 or float64"));
  EXPECT_THAT(g.refusal(OpKind::record_statistics, {half({2}), half({2}), g.input({1, 4}, DType::f64)}), HasSubstr("float32 or float64"));
  EXPECT_THAT(
      g.refusal(OpKind::random_uniform, {}, {{Attr::key, int64_t{1}}, {Attr::shape, Shape{2}}, {Attr::dtype, dtype_value(GetParam())}}),
      HasSubstr("would be rounded to 1"));
}

INSTANTIATE_TEST_SUITE_P(Types, Halves, testing::Values(DType::f16, DType::bf16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace zeroplan
