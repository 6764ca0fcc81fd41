#include <tuple>

#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

struct Arithmetic {
  const char *plain, *row, *column, *integer;
  OpKind op;
};

// Every arithmetic op: equal shapes, a broadcast row, a broadcast column against a row, integers.
void add_arithmetic(CaseList& cases) {
  const Arithmetic ops[] = {{"add", "add_row", "add_outer", "add_i64", OpKind::add},
                            {"sub", "sub_row", "sub_outer", "sub_i64", OpKind::sub},
                            {"mul", "mul_row", "mul_outer", "mul_i64", OpKind::mul},
                            {"div", "div_row", "div_outer", "div_i64", OpKind::div},
                            {"maximum", "maximum_row", "maximum_outer", "maximum_i64", OpKind::maximum},
                            {"minimum", "minimum_row", "minimum_outer", "minimum_i64", OpKind::minimum}};
  const TensorSpec a = real({4, 6}, 0.5, 2);
  for (const Arithmetic& each : ops) {
    cases.push_back({each.plain, each.op, {a, real({4, 6}, 0.5, 2)}, {}, true});
    cases.push_back({each.row, each.op, {real({2, 3, 5}, 0.5, 2), real({5}, 0.5, 2)}, {}, true});
    cases.push_back({each.column, each.op, {real({4, 1}, 0.5, 2), real({3, 1, 5}, 0.5, 2)}, {}, true});
    cases.push_back({each.integer, each.op, {ints({3, 4}, -9, 9), ints({4}, 1, 9)}});
  }
}

void add_comparisons(CaseList& cases) {
  const std::pair<const char*, OpKind> floating[] = {{"equal", OpKind::equal},
                                                     {"less", OpKind::less},
                                                     {"greater", OpKind::greater},
                                                     {"less_equal", OpKind::less_equal},
                                                     {"greater_equal", OpKind::greater_equal}};
  for (const auto& [name, op] : floating)
    cases.push_back({name, op, {reals({6}, {1, 2, 3, 4, 5, 6}), reals({2, 6}, {1, 3, 2, 4, 6, 5, -1, 2, 9, -4, 5, 6.5})}, {}, false});
  cases.push_back({"less_gradient", OpKind::less, {reals({3}, {1, 2, 3}), reals({3}, {2, 1, 4})}, {}, true, true});
  cases.push_back({"equal_i64", OpKind::equal, {ints({3, 8}, 0, 3), ints({8}, 0, 3)}});
  cases.push_back({"less_i32", OpKind::less, {ints({3, 8}, -3, 3, DType::i32), ints({1}, 0, 1, DType::i32)}});
  cases.push_back({"greater_equal_i64", OpKind::greater_equal, {ints({8, 1}, 0, 8), ints({8}, 0, 8)}});
  cases.push_back({"equal_bool", OpKind::equal, {booleans({9}), booleans({9})}});
  cases.push_back({"logical_and", OpKind::logical_and, {booleans({3, 8}), booleans({8})}});
  cases.push_back({"logical_or", OpKind::logical_or, {booleans({3, 1}), booleans({3, 8})}});
}

void add_remainders(CaseList& cases) {
  const TensorSpec a = reals({2, 4}, {-7.3, -2.2, -0.4, 0.7, 1.9, 3.3, 5.2, 8.1}), b = reals({4}, {-3, 2.5, 2, -1.5});
  const TensorSpec signed_ints = ints({4, 5}, -20, 20), divisors = listed({5}, {-3, 2, 7, -1, 5});
  for (const auto& [name, integer, positive, op] : {std::tuple{"modulo", "modulo_i64", "modulo_positive", OpKind::modulo},
                                                    {"remainder", "remainder_i64", "remainder_positive", OpKind::remainder}}) {
    cases.push_back({name, op, {a, b}, {}, true});
    cases.push_back({integer, op, {signed_ints, divisors}});
    cases.push_back({positive, op, {real({3, 5}, 1, 30), real({5}, 1, 4)}});
  }
  cases.push_back({"modulo_whole", OpKind::modulo, {reals({4}, {-6, 6, -6, 0}), reals({4}, {3, -3, -3, -2})}});
  cases.push_back({"modulo_u8", OpKind::modulo, {ints({6}, 0, 255, DType::u8), ints({6}, 1, 9, DType::u8)}});
}

void add_bits(CaseList& cases) {
  const TensorSpec a = ints({4, 6}, -900, 900), amounts = listed({6}, {0, 1, 5, 31, 63, 70});
  cases.push_back({"shift_left", OpKind::shift_left, {a, amounts}});
  cases.push_back({"shift_right", OpKind::shift_right, {a, amounts}});
  cases.push_back({"shift_left_u8", OpKind::shift_left, {ints({6}, 0, 255, DType::u8), ints({6}, 0, 9, DType::u8)}});
  for (const auto& [name, op] : {std::pair{"bit_and", OpKind::bit_and}, {"bit_or", OpKind::bit_or}, {"bit_xor", OpKind::bit_xor}})
    cases.push_back({name, op, {a, ints({6}, -900, 900)}});
  cases.push_back({"bit_xor_u8", OpKind::bit_xor, {ints({9}, 0, 255, DType::u8), listed({}, {255}, DType::u8)}});
  cases.push_back({"bit_and_i32", OpKind::bit_and, {ints({9}, -90, 90, DType::i32), ints({9}, -90, 90, DType::i32)}});
}

void add_gradients(CaseList& cases) {
  const TensorSpec dy = real({3, 7}), x = real({3, 7}, -3, 3);
  cases.push_back({"relu_grad", OpKind::relu_grad, {dy, x}});
  cases.push_back({"gelu_grad_exact", OpKind::gelu_grad, {dy, x}, {{Attr::approximate, int64_t{0}}}});
  cases.push_back({"gelu_grad_tanh", OpKind::gelu_grad, {dy, x}, {{Attr::approximate, int64_t{1}}}});
  cases.push_back({"silu_grad", OpKind::silu_grad, {dy, x}});
  cases.push_back({"tanh_grad", OpKind::tanh_grad, {dy, real({3, 7})}});
  cases.push_back({"sigmoid_grad", OpKind::sigmoid_grad, {dy, real({3, 7}, 0, 1)}});
  cases.push_back({"gelu_grad_row", OpKind::gelu_grad, {real({7}), real({3, 7}, -3, 3)}, {{Attr::approximate, int64_t{0}}}});
}

}  // namespace

CaseList binary_cases() {
  CaseList cases;
  add_arithmetic(cases);
  const TensorSpec base = real({4, 3}, 0.5, 2);
  cases.push_back({"pow", OpKind::pow, {base, real({3}, -2, 3)}, {}, true});
  cases.push_back({"pow_square", OpKind::pow, {real({4, 3}), constant(reals({}, {2}))}, {}, true});
  cases.push_back({"pow_cube", OpKind::pow, {real({4, 3}), constant(reals({1}, {3}))}, {}, true});
  cases.push_back({"pow_half", OpKind::pow, {base, constant(reals({}, {0.5}))}, {}, true});
  cases.push_back({"pow_mixed", OpKind::pow, {real({4, 3}), constant(reals({3}, {0, 1, 2}))}, {}, true});
  cases.push_back({"pow_zero", OpKind::pow, {reals({3}, {0, 1, 2}), constant(reals({}, {0}))}, {}, true, true});
  cases.push_back({"pow_i64", OpKind::pow, {ints({5}, -4, 5), ints({5}, 0, 6)}});
  cases.push_back({"add_long", OpKind::add, {real({3, 1031}), real({3, 1031})}});
  cases.push_back({"add_scalar", OpKind::add, {real({}), real({})}, {}, true});
  cases.push_back({"maximum_ties", OpKind::maximum, {reals({3}, {1, 2, 3}), reals({3}, {1, 5, 0})}});
  add_comparisons(cases);
  add_remainders(cases);
  add_bits(cases);
  add_gradients(cases);
  return cases;
}

}  // namespace zeroplan
