#pragma once
// Short ways to write what decoders compose. Numbers become scalars of the other operand's type.
#include "graph/onnx/folding_builder.h"

namespace zeroplan {

class Arithmetic {
 public:
  explicit Arithmetic(FoldingBuilder& build) : build(build) {}
  FoldingBuilder& build;

  ValueId add(ValueId a, ValueId b) { return build.add(OpKind::add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return build.add(OpKind::sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return build.add(OpKind::mul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return build.add(OpKind::div, {a, b}); }
  ValueId largest(ValueId a, ValueId b) { return build.add(OpKind::maximum, {a, b}); }
  ValueId smallest(ValueId a, ValueId b) { return build.add(OpKind::minimum, {a, b}); }
  ValueId less(ValueId a, ValueId b) { return build.add(OpKind::less, {a, b}); }
  ValueId equal(ValueId a, ValueId b) { return build.add(OpKind::equal, {a, b}); }
  ValueId both(ValueId a, ValueId b) { return build.add(OpKind::logical_and, {a, b}); }
  ValueId choose(ValueId condition, ValueId a, ValueId b) { return build.add(OpKind::where, {condition, a, b}); }

  ValueId plus(ValueId a, double b) { return b == 0 ? a : add(a, number(b, a)); }
  ValueId minus(ValueId a, double b) { return b == 0 ? a : sub(a, number(b, a)); }
  ValueId times(ValueId a, double b) { return b == 1 ? a : mul(a, number(b, a)); }
  ValueId below(ValueId a, double b) { return less(a, number(b, a)); }
  ValueId clamp(ValueId x, double low, double high) { return smallest(largest(x, number(low, x)), number(high, x)); }
  ValueId number(double value, ValueId like) { return build.scalar(value, build.dtype(like)); }

  ValueId sum(ValueId x, std::vector<int64_t> axes) { return reduce(OpKind::reduce_sum, x, std::move(axes)); }
  ValueId reduce(OpKind op, ValueId x, std::vector<int64_t> axes) {
    return build.add(op, {x}, {{Attr::axes, std::move(axes)}, {Attr::keepdims, int64_t{0}}});
  }
  // table [B, R, …], indices [B, M] → [B, M, …]
  ValueId gather_rows(ValueId table, ValueId indices) {
    return build.add(OpKind::gather, {table, indices}, {{Attr::axis, int64_t{1}}, {Attr::axes, std::vector<int64_t>{0}}});
  }
  ValueId slice(ValueId x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps, const Shape& shape) {
    return build.add(OpKind::slice, {x}, {{Attr::starts, starts}, {Attr::steps, steps}, {Attr::shape, shape}});
  }
};

}  // namespace zeroplan
