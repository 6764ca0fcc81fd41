#pragma once
// The families that op_cases() is put together from, and short ways to write operands.
#include "tests/op_cases/cases.h"

namespace zeroplan {

using CaseList = std::vector<OpCase>;

CaseList unary_cases();
CaseList binary_cases();
CaseList elementwise_cases();
CaseList reduce_cases();
CaseList movement_cases();
CaseList matmul_cases();
CaseList row_cases();  // softmax, norms, cross entropy
CaseList attention_cases();
CaseList index_cases();    // scatter, cumsum, arg_max, top_k
CaseList spatial_cases();  // convolutions, pools, batch statistics

inline TensorSpec real(Shape shape, double low = -1, double high = 1) { return {.shape = std::move(shape), .low = low, .high = high}; }
inline TensorSpec reals(Shape shape, std::vector<double> values) { return {.shape = std::move(shape), .values = std::move(values)}; }
inline TensorSpec booleans(Shape shape) { return {.shape = std::move(shape), .dtype = DType::boolean}; }
inline TensorSpec ints(Shape shape, int low, int high, DType dtype = DType::i64) {
  return {.shape = std::move(shape), .dtype = dtype, .low = static_cast<double>(low), .high = static_cast<double>(high)};
}
inline TensorSpec listed(Shape shape, std::vector<double> values, DType dtype = DType::i64) {
  return {.shape = std::move(shape), .dtype = dtype, .values = std::move(values)};
}
inline TensorSpec constant(TensorSpec spec) {
  spec.constant = true;
  return spec;
}
inline TensorSpec no_gradient(TensorSpec spec) {
  spec.gradient = false;
  return spec;
}
inline TensorSpec wide(TensorSpec spec) {
  spec.wide = true;
  return spec;
}
inline TensorSpec absent() { return {.absent = true}; }

}  // namespace zeroplan
