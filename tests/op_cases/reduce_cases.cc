#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

Attributes over(std::vector<int64_t> axes, int64_t keepdims = 0) { return {{Attr::axes, std::move(axes)}, {Attr::keepdims, keepdims}}; }

}  // namespace

CaseList reduce_cases() {
  const TensorSpec x = real({3, 4, 5});
  return {
      {"reduce_sum_last", OpKind::reduce_sum, {x}, over({2}), true},
      {"reduce_sum_first_keep", OpKind::reduce_sum, {x}, over({0}, 1), true},
      {"reduce_sum_middle", OpKind::reduce_sum, {x}, over({1}), true},
      {"reduce_sum_outer", OpKind::reduce_sum, {x}, over({0, 2}), true},
      {"reduce_sum_all", OpKind::reduce_sum, {x}, over({0, 1, 2}), true},
      {"reduce_sum_none", OpKind::reduce_sum, {x}, over({}), true},
      {"reduce_sum_ones", OpKind::reduce_sum, {real({1, 6, 1})}, over({0, 2}), true},
      {"reduce_sum_long", OpKind::reduce_sum, {real({2, 3001})}, over({1})},
      {"reduce_sum_rows", OpKind::reduce_sum, {real({1003, 17})}, over({0})},
      {"reduce_sum_pairs", OpKind::reduce_sum, {real({5, 67, 2})}, over({2})},
      {"reduce_mean_fours", OpKind::reduce_mean, {real({3, 2, 70, 2})}, over({1, 3})},
      {"reduce_max_triples", OpKind::reduce_max, {real({201, 3}, -9, -5)}, over({1})},
      {"reduce_sum_pairs_i32", OpKind::reduce_sum, {ints({70, 2}, -9, 9, DType::i32)}, over({1})},
      {"reduce_sum_i64", OpKind::reduce_sum, {ints({3, 4}, -9, 9)}, over({1})},
      {"reduce_mean_last_keep", OpKind::reduce_mean, {x}, over({2}, 1), true},
      {"reduce_mean_outer", OpKind::reduce_mean, {x}, over({0, 2}), true},
      {"reduce_mean_all", OpKind::reduce_mean, {x}, over({0, 1, 2}), true},
      {"reduce_max_last_keep", OpKind::reduce_max, {x}, over({2}, 1), true},
      {"reduce_max_first", OpKind::reduce_max, {x}, over({0}), true},
      {"reduce_max_negative", OpKind::reduce_max, {real({5, 33}, -9, -5)}, over({1})},
      {"reduce_max_i64", OpKind::reduce_max, {ints({3, 4}, -9, -1)}, over({0, 1})},
      {"reduce_prod_last", OpKind::reduce_prod, {x}, over({2}), true},
      {"reduce_prod_outer_keep", OpKind::reduce_prod, {x}, over({0, 2}, 1), true},
      {"reduce_prod_zeros", OpKind::reduce_prod, {reals({3, 3}, {0, 2, 3, 0, 0, 4, 5, -1, 2})}, over({1}), true},
      {"reduce_prod_rows", OpKind::reduce_prod, {real({33, 17}, 0.5, 1.5)}, over({0})},
      {"reduce_prod_small", OpKind::reduce_prod, {reals({4, 1}, {1e-30, 1e-30, 1e30, 1e30})}, over({0})},
      {"reduce_prod_empty", OpKind::reduce_prod, {real({0, 3})}, over({0})},
      {"reduce_prod_i64", OpKind::reduce_prod, {ints({3, 4}, -9, 9)}, over({1})},
      {"reduce_prod_i32", OpKind::reduce_prod, {ints({3, 40}, -9, 9, DType::i32)}, over({1})},
  };
}

}  // namespace zeroplan
