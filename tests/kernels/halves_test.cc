// What is particular to 16-bit operands: sums are made in float32, and leave it only where the node says so.
#include <cmath>

#include <gtest/gtest.h>

#include "graph/ops/halves.h"
#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

// One node on constants of the type.
HostTensor result(const TestDevice& device, OpKind op, std::vector<HostTensor> operands, Attributes attributes) {
  CaseGraph built;
  Builder build(built.graph);
  std::vector<ValueId> inputs;
  for (HostTensor& operand : operands) {
    inputs.push_back(built.graph.add_value({.name = "in", .dtype = operand.dtype(), .shape = operand.shape(), .kind = ValueKind::input}));
    built.values[inputs.back()] = std::move(operand);
  }
  build.add_multi(op, inputs, std::move(attributes));
  built.node = built.graph.nodes.back();
  RunOptions options{device};
  return run_case(built, options)[0];
}

HostTensor bf16(Shape shape, const std::vector<double>& values) { return HostTensor::of(DType::bf16, std::move(shape), values); }

const std::vector<double> kAddends = {256, 1, 1, 1, 1, 1, 1, 1};  // in bfloat16, 256 + 1 is 256
const std::vector<double> kOnes(8, 1);

Attributes in_float(Attributes attributes) {
  attributes.set(Attr::dtype, dtype_value(DType::f32));
  return attributes;
}

// The sum is 263; bfloat16 has 262 and 264, of which the latter is even.
void expect_sum(const TestDevice& device, OpKind op, const std::vector<HostTensor>& operands, const Attributes& attributes,
                double divisor = 1) {
  const HostTensor rounded = result(device, op, operands, attributes), sum = result(device, op, operands, in_float(attributes));
  EXPECT_EQ(rounded.dtype(), DType::bf16);
  EXPECT_EQ(rounded.get(0), 264 / divisor);
  EXPECT_EQ(sum.dtype(), DType::f32);
  EXPECT_EQ(sum.get(0), 263 / divisor);
}

class HalvesOn : public testing::TestWithParam<TestDevice> {};
INSTANTIATE_TEST_SUITE_P(All, HalvesOn, testing::ValuesIn(test_devices()), testing::PrintToStringParamName());

TEST_P(HalvesOn, SumsAreMadeInFloat) {
  const Attributes axes = {{Attr::axes, std::vector<int64_t>{0}}, {Attr::keepdims, int64_t{0}}};
  expect_sum(GetParam(), OpKind::reduce_sum, {bf16({8}, kAddends)}, axes);
  expect_sum(GetParam(), OpKind::reduce_mean, {bf16({8}, kAddends)}, axes, 8);
  expect_sum(GetParam(), OpKind::matmul, {bf16({1, 8}, kAddends), bf16({8, 1}, kOnes)}, {});
  const HostTensor zeros = HostTensor::of(DType::i64, {8}, std::vector<int>(8, 0));
  expect_sum(GetParam(), OpKind::gather_grad, {bf16({8, 1}, kAddends), zeros}, {{Attr::axis, int64_t{0}}, {Attr::shape, Shape{1, 1}}});
  const Attributes window = {{Attr::strides, std::vector<int64_t>{1}},
                             {Attr::pads, std::vector<int64_t>{0, 0}},
                             {Attr::dilations, std::vector<int64_t>{1}},
                             {Attr::groups, int64_t{1}},
                             {Attr::shape, Shape{1, 1, 1}}};
  expect_sum(GetParam(), OpKind::conv_grad_weight, {bf16({1, 1, 8}, kAddends), bf16({1, 1, 8}, kOnes)}, window);
}

// Casts round once, whatever they come from but for integers, which go by way of float.
TEST_P(HalvesOn, CastsRoundOnce) {
  const double tie = 1 + 0x1p-11 + 0x1p-40;  // in float it would be half-way
  for (const DType from : {DType::f32, DType::f64, DType::i64})
    for (const DType to : {DType::f16, DType::bf16}) {
      std::vector<double> values(70);
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i)) * 999;
      values[3] = tie;
      values[4] = 1e30;
      if (from == DType::i64) values[4] = 0x1p40;
      const HostTensor x = HostTensor::of(from, {7, 10}, values);
      EXPECT_TRUE(result(GetParam(), OpKind::cast, {x}, {{Attr::dtype, dtype_value(to)}}) == x.cast(to))
          << dtype_name(from) << dtype_name(to);
    }
  EXPECT_EQ(HostTensor::of(DType::f64, {1}, std::vector<double>{tie}).cast(DType::f16).get(0), 1 + 0x1p-10);
}

// Each operand that a kernel cannot read itself has a copy in the workspace.
TEST(Halves, CopiesAreCounted) {
  Graph graph;
  Builder build(graph);
  const auto input = [&](DType dtype, Shape shape) {
    return graph.add_value({.name = "x", .dtype = dtype, .shape = std::move(shape), .kind = ValueKind::input});
  };
  const auto scratch = [&] { return workspace_bytes(graph, graph.nodes.back(), DeviceKind::cpu, 1); };
  build.add(OpKind::matmul, {input(DType::bf16, {5, 7}), input(DType::bf16, {7, 3})});
  EXPECT_EQ(scratch(), 256 + 128 + 128);  // 140, 84 and 60 bytes
  build.add(OpKind::matmul, {input(DType::bf16, {5, 7}), input(DType::bf16, {7, 3})}, in_float({}));
  EXPECT_EQ(scratch(), 256 + 128);
  build.add(OpKind::matmul, {input(DType::f32, {5, 7}), input(DType::f32, {7, 3})});
  EXPECT_EQ(scratch(), 0);
  build.add(OpKind::exp, {input(DType::f16, {5, 7})});
  EXPECT_EQ(scratch(), 0);
}

}  // namespace
}  // namespace zeroplan
