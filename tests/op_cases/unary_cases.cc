#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

Attributes to(DType dtype) { return {{Attr::dtype, dtype_value(dtype)}}; }
Attributes approximate(int64_t kind) { return {{Attr::approximate, kind}}; }

}  // namespace

CaseList unary_cases() {
  const TensorSpec x = real({3, 5}, -3, 3);
  const TensorSpec positive = real({3, 5}, 0.3, 3);
  const TensorSpec inner = real({3, 5}, -0.8, 0.8), fractions = reals({6}, {-2.7, -1.2, -0.3, 0.4, 1.6, 2.2});
  const double nan = __builtin_nan("");
  return {
      {"neg", OpKind::neg, {x}, {}, true},
      {"neg_scalar", OpKind::neg, {real({})}, {}, true},
      {"neg_i64", OpKind::neg, {ints({7}, -9, 9)}},
      {"abs", OpKind::abs, {x}, {}, true},
      {"abs_i32", OpKind::abs, {ints({7}, -9, 9, DType::i32)}},
      {"sign", OpKind::sign, {reals({5}, {-2, -0.5, 0.25, 3, 9})}, {}, true, true},
      {"sqrt", OpKind::sqrt, {positive}, {}, true},
      {"reciprocal", OpKind::reciprocal, {positive}, {}, true},
      {"exp", OpKind::exp, {x}, {}, true},
      {"exp_long", OpKind::exp, {real({1037}, -20, 20)}},
      {"log", OpKind::log, {positive}, {}, true},
      {"sin", OpKind::sin, {x}, {}, true},
      {"cos", OpKind::cos, {x}, {}, true},
      {"tan", OpKind::tan, {real({3, 5}, -1.2, 1.2)}, {}, true},
      {"asin", OpKind::asin, {inner}, {}, true},
      {"acos", OpKind::acos, {inner}, {}, true},
      {"atan", OpKind::atan, {x}, {}, true},
      {"sinh", OpKind::sinh, {x}, {}, true},
      {"cosh", OpKind::cosh, {x}, {}, true},
      {"asinh", OpKind::asinh, {x}, {}, true},
      {"acosh", OpKind::acosh, {real({3, 5}, 1.2, 4)}, {}, true},
      {"atanh", OpKind::atanh, {inner}, {}, true},
      {"ceil", OpKind::ceil, {fractions}, {}, true, true},
      {"floor", OpKind::floor, {fractions}, {}, true, true},
      {"round", OpKind::round, {fractions}, {}, true, true},
      {"round_halves", OpKind::round, {reals({8}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 1e9})}},
      {"floor_long", OpKind::floor, {real({517}, -9, 9)}},
      {"tanh", OpKind::tanh, {x}, {}, true},
      {"tanh_wide", OpKind::tanh, {real({97}, -40, 40)}},
      {"sigmoid", OpKind::sigmoid, {x}, {}, true},
      {"sigmoid_wide", OpKind::sigmoid, {real({97}, -80, 80)}},
      {"erf", OpKind::erf, {x}, {}, true},
      {"relu", OpKind::relu, {x}, {}, true},
      {"gelu_exact", OpKind::gelu, {x}, approximate(0), true},
      {"gelu_tanh", OpKind::gelu, {x}, approximate(1), true},
      {"gelu_long", OpKind::gelu, {real({2, 517}, -6, 6)}, approximate(1)},
      {"silu", OpKind::silu, {x}, {}, true},
      {"logical_not", OpKind::logical_not, {booleans({3, 5})}},
      {"is_nan", OpKind::is_nan, {reals({4}, {1, nan, -2, nan})}, {}, true, true},
      {"cast_same", OpKind::cast, {x}, to(DType::f64), true},
      {"cast_to_f32", OpKind::cast, {x}, to(DType::f32)},
      {"cast_to_i64", OpKind::cast, {real({3, 5}, -9, 9)}, to(DType::i64)},
      {"cast_i64", OpKind::cast, {ints({3, 5}, -9, 9)}, to(DType::f32)},
      {"cast_i32_i64", OpKind::cast, {ints({3, 5}, -9, 9, DType::i32)}, to(DType::i64)},
      {"cast_bool", OpKind::cast, {booleans({3, 5})}, to(DType::f64)},
      {"cast_to_bool", OpKind::cast, {ints({3, 5}, -2, 3)}, to(DType::boolean)},
  };
}

}  // namespace zeroplan
