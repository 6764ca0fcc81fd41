// matmul by cuBLASLt: batches that one call does not take, sizes beyond the op cases, sums of 16-bit products.
#include <gtest/gtest.h>

#include "tests/cuda_kernels/sized_case.h"
#include "tests/kernels/judge.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

TEST(CudaMatmul, Batches) {
  const std::pair<Shape, Shape> shapes[] = {
      {{3, 1, 2, 5, 7}, {4, 2, 7, 3}}, {{2, 3, 5, 7}, {3, 7, 2}}, {{2, 1, 5, 7}, {2, 4, 7, 3}},
      {{9, 1, 7}, {9, 7, 1}},          {{6, 1, 7}, {7, 5}},       {{5, 7}, {2, 3, 7, 4}},
      {{4, 3, 1}, {4, 1, 6}},          {{7}, {3, 7, 5}},
  };
  for (const auto& [a, b] : shapes) check_on_device({"matmul", OpKind::matmul, {real(a), real(b)}});
}

// More batches than one call takes.
TEST(CudaMatmul, ManyBatches) {
  const OpCase op_case = {"matmul", OpKind::matmul, {real({70001, 2, 3}), real({70001, 3, 1})}};
  const CaseGraph built = build_case(op_case, DType::f32, 3);
  expect_all_close(device_outputs(built), reference_outputs(built), 1e-5);
}

TEST(CudaMatmul, Sizes) {
  const std::pair<Shape, Shape> shapes[] = {{{129, 257}, {257, 65}}, {{1, 1000}, {1000, 1}}, {{300, 1}, {1, 300}}, {{0, 5}, {5, 3}},
                                            {{3, 0}, {0, 4}},        {{2, 3, 0}, {0, 4}},    {{2, 0, 5}, {5, 3}}};
  for (const auto& [a, b] : shapes) {
    const Shape y = {a[0], b.back()};
    check_on_device({"matmul", OpKind::matmul, {real(a), real(b)}});
    if (a.size() > 2) continue;
    check_on_device({"with_bias", OpKind::matmul, {real(a), real(b), real({y[1]})}});
    check_on_device({"with_both", OpKind::matmul, {real(a), real(b), real({y[1]}), real(y)}});
  }
}

TEST(CudaMatmul, HalvesGiveFloatWhereTheNodeSaysSo) {
  Attributes attributes;
  attributes.set(Attr::dtype, dtype_value(DType::f32));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<double> addends(8, 1);
    addends[0] = 4096;  // in both types 4096 + 1 is 4096
    const OpCase op_case = {
        "sum", OpKind::matmul, {{{1, 8}, dtype, 0, 0, addends}, {{8, 1}, dtype, 0, 0, std::vector<double>(8, 1)}}, attributes};
    const std::vector<HostTensor> got = device_outputs(build_case(op_case, DType::f32, 1));
    EXPECT_EQ(got[0].dtype(), DType::f32);
    EXPECT_EQ(got[0].get(0), 4103);
  }
}

}  // namespace
}  // namespace zeroplan
