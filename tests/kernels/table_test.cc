// The table of kernels and what kernels refuse.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

TEST(Table, HoldsEveryKernelOpAndNoOther) {
  for (const std::string& set : instruction_sets()) {
#define ZP_OP(name) EXPECT_EQ(cpu_kernel(OpKind::name, set), nullptr) << #name;
#define ZP_KERNEL_OP(name) EXPECT_NE(cpu_kernel(OpKind::name, set), nullptr) << #name;
#include "graph/ops/ops.def"
#undef ZP_OP
  }
}

TEST(Table, UsesTheWidestSetOfTheMachine) {
  EXPECT_EQ(instruction_sets().back(), cpu_instruction_set());
  EXPECT_EQ(cpu_kernel(OpKind::exp), cpu_kernel(OpKind::exp, cpu_instruction_set()));
  EXPECT_THROW(cpu_kernel(OpKind::exp, "sse9"), Error);
}

std::vector<HostTensor> run(OpKind op, std::vector<HostTensor> inputs, Attributes attributes) {
  CaseGraph built;
  Builder builder(built.graph);
  std::vector<ValueId> operands;
  for (HostTensor& tensor : inputs) {
    Value value;
    value.name = "x";
    value.dtype = tensor.dtype();
    value.shape = tensor.shape();
    value.kind = ValueKind::input;
    operands.push_back(built.graph.add_value(value));
    built.values[operands.back()] = tensor;
  }
  builder.add_multi(op, operands, attributes);
  built.node = built.graph.nodes.back();
  RunOptions options{cpu_device(cpu_instruction_set())};
  return run_case(built, options);
}

TEST(Refusals, GatherNamesTheIndex) {
  const HostTensor table(DType::f32, {3, 2}), indices = HostTensor::of<int64_t>(DType::i64, {2}, {1, 3});
  try {
    run(OpKind::gather, {table, indices}, {{Attr::axis, int64_t{0}}});
    FAIL() << "took an index outside the table";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("index 3 at position 1"), std::string::npos) << error.message();
  }
}

TEST(Refusals, CrossEntropyNamesTheLabel) {
  const HostTensor logits(DType::f32, {2, 3}), labels = HostTensor::of<int64_t>(DType::i64, {2}, {0, -7});
  EXPECT_THROW(run(OpKind::cross_entropy, {logits, labels}, {}), Error);
  EXPECT_NO_THROW(run(OpKind::cross_entropy, {logits, labels}, {{Attr::ignore_index, int64_t{-7}}}));
}

TEST(Refusals, ChainThatIsTooLong) {
  ElementwiseCode code;
  for (int i = 0; i < 200; ++i) code.instructions.push_back({OpKind::exp, i});
  EXPECT_THROW(run(OpKind::elementwise, {HostTensor(DType::f32, {4})}, encode_elementwise(code)), Error);
}

TEST(Shapes, EmptyOperandsAndSums) {
  const HostTensor none(DType::f32, {0, 4});
  EXPECT_EQ(run(OpKind::exp, {none}, {})[0].count(), 0);
  EXPECT_EQ(run(OpKind::copy, {none}, {})[0].count(), 0);
  const HostTensor product = run(OpKind::matmul, {HostTensor(DType::f32, {2, 0}), HostTensor(DType::f32, {0, 3})}, {})[0];
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(product.get(i), 0);
}

}  // namespace
}  // namespace zeroplan
