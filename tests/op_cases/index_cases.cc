// scatter, and what runs along one axis: cumsum, arg_max, top_k.
#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

Attributes by(const char* reduction) { return {{Attr::reduction, std::string(reduction)}}; }
Attributes sums(int64_t axis, int64_t exclusive, int64_t reverse) {
  return {{Attr::axis, axis}, {Attr::exclusive, exclusive}, {Attr::reverse, reverse}};
}
Attributes place(int64_t axis, int64_t keepdims, int64_t last) {
  return {{Attr::axis, axis}, {Attr::keepdims, keepdims}, {Attr::select_last, last}};
}
Attributes best(int64_t axis, int64_t k, int64_t largest) { return {{Attr::axis, axis}, {Attr::k, k}, {Attr::largest, largest}}; }

void add_scatter(CaseList& cases) {
  const TensorSpec data = real({4, 3}, 0.5, 2), updates = real({5, 3}, 0.5, 2), twice = listed({5}, {3, 0, -1, 3, 1});
  const TensorSpec batch = real({2, 4, 3}, 0.5, 2), parts = real({2, 3, 3}, 0.5, 2), own = listed({2, 3}, {3, 0, 3, -4, 1, 2}, DType::i32);
  const TensorSpec zeros = reals({3}, {0, 2, 3}), factors = reals({6}, {2, 0, 5, 0, 0.5, 3}), places = listed({6}, {0, 1, 1, 2, 2, 0});
  cases.push_back({"scatter_write", OpKind::scatter, {data, twice, updates}, by("none"), true});
  cases.push_back({"scatter_add", OpKind::scatter, {data, twice, updates}, by("add"), true});
  cases.push_back({"scatter_mul", OpKind::scatter, {data, twice, updates}, by("mul"), true});
  cases.push_back({"scatter_max", OpKind::scatter, {data, twice, updates}, by("max"), true});
  cases.push_back({"scatter_min", OpKind::scatter, {data, twice, updates}, by("min"), true});
  cases.push_back({"scatter_mul_zeros", OpKind::scatter, {zeros, places, factors}, by("mul"), true});
  cases.push_back({"scatter_write_batch", OpKind::scatter, {batch, own, parts}, by("none"), true});
  cases.push_back({"scatter_mul_batch", OpKind::scatter, {batch, own, parts}, by("mul"), true});
  cases.push_back({"scatter_max_batch", OpKind::scatter, {batch, own, parts}, by("max"), true});
  cases.push_back({"scatter_nothing", OpKind::scatter, {data, ints({0}, 0, 1), real({0, 3})}, by("add")});
  cases.push_back({"scatter_wide", OpKind::scatter, {real({9, 130}), ints({40}, 0, 9), real({40, 130})}, by("add")});
  const char* names[] = {"scatter_i64_none", "scatter_i64_add", "scatter_i64_mul", "scatter_i64_max", "scatter_i64_min"};
  const char* reductions[] = {"none", "add", "mul", "max", "min"};
  for (int i = 0; i < 5; ++i)
    cases.push_back({names[i], OpKind::scatter, {ints({5}, -9, 9), ints({7}, -5, 5), ints({7}, -9, 9)}, by(reductions[i])});
  cases.push_back(
      {"scatter_i32_add", OpKind::scatter, {ints({5}, -9, 9, DType::i32), ints({7}, 0, 5), ints({7}, -9, 9, DType::i32)}, by("add")});
  cases.push_back({"scatter_bool", OpKind::scatter, {booleans({5, 2}), ints({3}, 0, 5), booleans({3, 2})}, by("none")});
}

void add_sums(CaseList& cases) {
  const TensorSpec x = real({2, 4, 3});
  cases.push_back({"cumsum", OpKind::cumsum, {x}, sums(1, 0, 0), true});
  cases.push_back({"cumsum_last_exclusive", OpKind::cumsum, {x}, sums(-1, 1, 0), true});
  cases.push_back({"cumsum_first_reverse", OpKind::cumsum, {x}, sums(0, 0, 1), true});
  cases.push_back({"cumsum_exclusive_reverse", OpKind::cumsum, {x}, sums(1, 1, 1), true});
  cases.push_back({"cumsum_long", OpKind::cumsum, {real({3, 2049})}, sums(1, 0, 0)});
  cases.push_back({"cumsum_columns", OpKind::cumsum, {real({2, 17, 131})}, sums(1, 0, 0)});
  cases.push_back({"cumsum_i64", OpKind::cumsum, {ints({3, 5}, -9, 9)}, sums(1, 1, 0)});
  cases.push_back({"cumsum_i32", OpKind::cumsum, {ints({3, 5}, -9, 9, DType::i32)}, sums(0, 0, 1)});
}

}  // namespace

CaseList index_cases() {
  const TensorSpec x = real({3, 5, 4}), few = ints({4, 6}, 0, 3), column = ints({3, 9, 70}, 0, 4, DType::i32);
  const double nan = __builtin_nan("");
  const TensorSpec with_nan = reals({6}, {1, nan, 5, nan, -3, 2});
  CaseList cases = {
      {"arg_max", OpKind::arg_max, {x}, place(1, 0, 0), true, true},
      {"arg_max_last_keep", OpKind::arg_max, {x}, place(-1, 1, 0)},
      {"arg_max_ties_first", OpKind::arg_max, {few}, place(1, 0, 0)},
      {"arg_max_ties_last", OpKind::arg_max, {few}, place(1, 0, 1)},
      {"arg_max_columns", OpKind::arg_max, {column}, place(1, 0, 1)},
      {"arg_max_nan", OpKind::arg_max, {with_nan}, place(0, 0, 0)},
      {"arg_max_nan_last", OpKind::arg_max, {with_nan}, place(0, 0, 1)},
      {"top_k", OpKind::top_k, {x}, best(1, 3, 1), true},
      {"top_k_smallest_last", OpKind::top_k, {x}, best(-1, 2, 0), true},
      {"top_k_first_all", OpKind::top_k, {x}, best(0, 3, 1), true},
      {"top_k_vector", OpKind::top_k, {real({7})}, best(0, 4, 1), true},
      {"top_k_none", OpKind::top_k, {x}, best(1, 0, 1)},
      {"top_k_ties", OpKind::top_k, {few}, best(1, 4, 1)},
      {"top_k_ties_smallest", OpKind::top_k, {few}, best(1, 4, 0)},
      {"top_k_nan", OpKind::top_k, {with_nan}, best(0, 4, 1)},
      {"top_k_nan_smallest", OpKind::top_k, {with_nan}, best(0, 6, 0)},
  };
  add_scatter(cases);
  add_sums(cases);
  return cases;
}

}  // namespace zeroplan
