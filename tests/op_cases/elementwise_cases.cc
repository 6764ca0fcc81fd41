#include "graph/ops/elementwise.h"

#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

// (x · 2 + b) through tanh-GELU, on a broadcast row.
ElementwiseCode bias_gelu() {
  ElementwiseCode code;
  code.constants = {2};
  code.instructions = {{OpKind::mul, 0, 2}, {OpKind::add, 3, 1}, {OpKind::gelu, 4, -1, -1, 1}};
  return code;
}

// where(c and x < 0.25, exp(x), y) / (1 + y²)
ElementwiseCode masked() {
  ElementwiseCode code;
  code.constants = {0.25, 1};
  code.instructions = {{OpKind::less, 1, 3}, {OpKind::logical_and, 0, 5}, {OpKind::exp, 1},    {OpKind::where, 6, 7, 2},
                       {OpKind::mul, 2, 2},  {OpKind::add, 9, 4},         {OpKind::div, 8, 10}};
  return code;
}

// Every op with a floating-point result that a chain may hold, summed up.
ElementwiseCode everything() {
  ElementwiseCode code;
  code.constants = {0};
  int sum = 2, next = 3;
  const auto push = [&](ElementwiseInstruction step) {
    code.instructions.push_back(step);
    code.instructions.push_back({OpKind::add, sum, next});
    sum = next + 1;
    next += 2;
  };
  for (const OpKind op :
       {OpKind::neg,    OpKind::abs,  OpKind::sign,    OpKind::sqrt,  OpKind::reciprocal, OpKind::exp,  OpKind::log,  OpKind::sin,
        OpKind::cos,    OpKind::tanh, OpKind::sigmoid, OpKind::erf,   OpKind::relu,       OpKind::gelu, OpKind::silu, OpKind::logical_not,
        OpKind::is_nan, OpKind::ceil, OpKind::floor,   OpKind::round, OpKind::atan,       OpKind::sinh, OpKind::cosh, OpKind::asinh})
    push({op, 0});
  for (const OpKind op : {OpKind::sub, OpKind::mul, OpKind::div, OpKind::pow, OpKind::maximum, OpKind::minimum, OpKind::equal, OpKind::less,
                          OpKind::greater, OpKind::less_equal, OpKind::greater_equal, OpKind::logical_or, OpKind::relu_grad,
                          OpKind::gelu_grad, OpKind::silu_grad, OpKind::tanh_grad, OpKind::sigmoid_grad})
    push({op, 0, 1});
  return code;
}

// Functions that are defined below 1 alone, and a remainder.
ElementwiseCode inverse_functions() {
  ElementwiseCode code;
  code.constants = {1};
  code.instructions = {{OpKind::tan, 0}, {OpKind::asin, 0}, {OpKind::acos, 0}, {OpKind::atanh, 0}, {OpKind::add, 0, 1}, {OpKind::acosh, 6}};
  for (int i = 0; i < 5; ++i) code.instructions.push_back({OpKind::add, i == 0 ? 7 : 7 + i, i < 4 ? 2 + i : 0});
  code.instructions.push_back({OpKind::modulo, 12, 1});
  code.instructions.push_back({OpKind::remainder, 12, 0});
  code.instructions.push_back({OpKind::add, 13, 14});
  return code;
}

}  // namespace

CaseList elementwise_cases() {
  return {
      {"where", OpKind::where, {booleans({3, 5}), real({3, 5}), real({3, 5})}, {}, true},
      {"where_broadcast", OpKind::where, {booleans({1, 5}), real({2, 3, 1}), real({5})}, {}, true},
      {"where_scalar", OpKind::where, {booleans({4, 4}), real({}), real({4, 4})}, {}, true},
      {"where_i64", OpKind::where, {booleans({7}), ints({7}, -5, 5), ints({1}, 0, 1)}},
      {"elementwise_bias_gelu", OpKind::elementwise, {real({6, 37}), real({37})}, encode_elementwise(bias_gelu())},
      {"elementwise_masked", OpKind::elementwise, {booleans({4, 9}), real({4, 9}), real({4, 1})}, encode_elementwise(masked())},
      {"elementwise_everything", OpKind::elementwise, {real({5, 7}, 0.5, 2), real({5, 7}, 0.5, 2)}, encode_elementwise(everything())},
      {"elementwise_inverse", OpKind::elementwise, {real({5, 7}, 0.2, 0.9)}, encode_elementwise(inverse_functions())},
      {"elementwise_long", OpKind::elementwise, {real({3, 2051}), real({3, 2051})}, encode_elementwise(bias_gelu())},
  };
}

}  // namespace zeroplan
