#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

using Ints = std::vector<int64_t>;

Attributes slice(Shape shape, Ints starts, Ints steps) {
  return {{Attr::shape, std::move(shape)}, {Attr::starts, std::move(starts)}, {Attr::steps, std::move(steps)}};
}
Attributes axis(int64_t axis) { return {{Attr::axis, axis}}; }
Attributes table(int64_t axis, Shape shape) { return {{Attr::axis, axis}, {Attr::shape, std::move(shape)}}; }
Attributes shared(int64_t axis) { return {{Attr::axis, axis}, {Attr::axes, Ints{0}}}; }
Attributes shared(int64_t axis, Shape shape) { return {{Attr::axis, axis}, {Attr::axes, Ints{0}}, {Attr::shape, std::move(shape)}}; }
Attributes filled(double value, Shape shape, DType dtype) {
  return {{Attr::value, value}, {Attr::shape, std::move(shape)}, {Attr::dtype, dtype_value(dtype)}};
}
Attributes shape(Shape shape) { return {{Attr::shape, std::move(shape)}}; }
Attributes permutation(Ints permutation) { return {{Attr::permutation, std::move(permutation)}}; }

void add_views(CaseList& cases) {
  const TensorSpec x = real({2, 3, 4});
  cases.push_back({"reshape", OpKind::reshape, {x}, shape({6, 1, 4}), true});
  cases.push_back({"reshape_scalar", OpKind::reshape, {real({1, 1})}, shape({}), true});
  cases.push_back({"transpose", OpKind::transpose, {x}, permutation({2, 0, 1}), true});
  cases.push_back({"slice", OpKind::slice, {x}, slice({1, 2, 2}, {1, 0, 1}, {1, 2, 2}), true});
  cases.push_back({"slice_reversed", OpKind::slice, {x}, slice({2, 3, 4}, {1, 0, 3}, {-1, 1, -1}), true});
  cases.push_back({"broadcast", OpKind::broadcast, {real({3, 1})}, shape({2, 3, 4}), true});
}

}  // namespace

CaseList movement_cases() {
  CaseList cases = {
      {"copy", OpKind::copy, {real({3, 5})}, {}, true},
      {"copy_i64", OpKind::copy, {ints({3, 5}, -9, 9)}},
      {"copy_bool", OpKind::copy, {booleans({2, 9})}},
      {"concat_first", OpKind::concat, {real({2, 3}), real({1, 3}), real({4, 3})}, axis(0), true},
      {"concat_last", OpKind::concat, {real({2, 3, 2}), real({2, 3, 1})}, axis(-1), true},
      {"concat_one", OpKind::concat, {real({2, 3})}, axis(1), true},
      {"concat_i64", OpKind::concat, {ints({2}, 0, 9), ints({3}, 0, 9)}, axis(0)},
      {"slice_grad", OpKind::slice_grad, {real({1, 2, 2})}, slice({2, 3, 4}, {1, 0, 1}, {1, 2, 2}), true},
      {"slice_grad_reversed", OpKind::slice_grad, {real({2, 3})}, slice({2, 6}, {1, 5}, {-1, -2}), true},
      {"gather", OpKind::gather, {real({5, 3}), listed({2, 3}, {0, 4, 4, -1, 2, -5})}, axis(0), true},
      {"gather_middle", OpKind::gather, {real({2, 4, 3}), listed({3}, {3, -4, 3})}, axis(1), true},
      {"gather_scalar", OpKind::gather, {real({4, 3}), listed({}, {-2}, DType::i32)}, axis(0), true},
      {"gather_i64_table", OpKind::gather, {ints({6}, -9, 9), listed({3}, {1, 1, 5})}, axis(0)},
      {"gather_wide", OpKind::gather, {real({9, 130}), ints({4, 7}, 0, 9)}, axis(0)},
      {"gather_grad", OpKind::gather_grad, {real({2, 3, 4}), listed({2, 3}, {0, 4, 4, -1, 2, -5})}, table(0, {5, 4}), true},
      {"gather_grad_middle", OpKind::gather_grad, {real({2, 3, 3}), listed({3}, {3, -4, 3})}, table(1, {2, 4, 3}), true},
      {"gather_shared", OpKind::gather, {real({2, 5, 3}), listed({2, 4}, {0, 4, 4, -1, 2, -5, 1, 1})}, shared(1), true},
      {"gather_shared_between", OpKind::gather, {real({2, 3, 5}), listed({2, 4}, {0, 4, 4, -1, 2, -5, 1, 1})}, shared(2), true},
      {"gather_shared_elements", OpKind::gather, {real({3, 130}), ints({3, 77}, -130, 130)}, shared(1)},
      {"gather_shared_i64", OpKind::gather, {ints({2, 5}, -9, 9), ints({2, 3, 2}, 0, 5, DType::i32)}, shared(1)},
      {"gather_grad_shared",
       OpKind::gather_grad,
       {real({2, 4, 3}), listed({2, 4}, {0, 4, 4, -1, 2, -5, 1, 1})},
       shared(1, {2, 5, 3}),
       true},
      {"gather_grad_shared_many", OpKind::gather_grad, {real({3, 64, 33}), ints({3, 64}, 0, 5)}, shared(1, {3, 7, 33})},
      {"gather_grad_many", OpKind::gather_grad, {real({64, 33}), ints({64}, 0, 5)}, table(0, {7, 33})},
      {"dropout_grad", OpKind::dropout_grad, {real({3, 50}), booleans({3, 50})}, {{Attr::ratio, 0.25}}},
      {"fill", OpKind::fill, {}, filled(0.5, {3, 5}, DType::f32)},
      {"fill_i64", OpKind::fill, {}, filled(-7, {4}, DType::i64)},
      {"fill_bool", OpKind::fill, {}, filled(1, {4}, DType::boolean)},
  };
  add_views(cases);
  return cases;
}

}  // namespace zeroplan
