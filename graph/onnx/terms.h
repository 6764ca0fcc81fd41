#pragma once
// Formulas over values, for decoders that compose: `x / (abs(x) + 1)` builds the nodes. Numbers take the type of the other operand;
// shapes broadcast as NumPy's do.
#include <vector>

#include "graph/onnx/decode.h"

namespace zeroplan {

class Term {
 public:
  Term(FoldingBuilder& build, ValueId id) : build_(&build), id_(id) {}
  ValueId id() const { return id_; }
  FoldingBuilder& build() const { return *build_; }
  DType dtype() const { return build_->dtype(id_); }
  const Shape& shape() const { return build_->shape(id_); }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  Term number(double value) const { return {*build_, build_->scalar(value, dtype())}; }
  Term cast(DType dtype) const { return {*build_, build_->cast(id_, dtype)}; }
  Term reshape(const Shape& shape) const { return {*build_, build_->reshape(id_, shape)}; }
  Term transpose(const std::vector<int64_t>& permutation) const { return {*build_, build_->transpose(id_, permutation)}; }
  Term broadcast(const Shape& shape) const { return {*build_, build_->broadcast(id_, shape)}; }

 private:
  FoldingBuilder* build_;
  ValueId id_;
};

inline Term term(DecodeContext& c, int input) { return {c.build, c.in(input)}; }
inline void result(DecodeContext& c, Term y, int output = 0) { c.out(output, y.id()); }

inline Term apply(OpKind op, Term x, Attributes attributes = {}) { return {x.build(), x.build().add(op, {x.id()}, std::move(attributes))}; }
inline Term apply(OpKind op, Term a, Term b) { return {a.build(), a.build().add(op, {a.id(), b.id()})}; }
// Decoders of operators that are one of the internal form.
template <OpKind op>
void unary(DecodeContext& c) {
  result(c, apply(op, term(c, 0)));
}
template <OpKind op>
void binary(DecodeContext& c) {
  result(c, apply(op, term(c, 0), term(c, 1)));
}

#define ZP_TERM_UNARY(name, op) \
  inline Term name(Term x) { return apply(OpKind::op, x); }
ZP_TERM_UNARY(operator-, neg)
ZP_TERM_UNARY(operator!, logical_not)
ZP_TERM_UNARY(abs, abs)
ZP_TERM_UNARY(exp, exp)
ZP_TERM_UNARY(log, log)
ZP_TERM_UNARY(sqrt, sqrt)
ZP_TERM_UNARY(floor, floor)
ZP_TERM_UNARY(cos, cos)
ZP_TERM_UNARY(tanh, tanh)
ZP_TERM_UNARY(sigmoid, sigmoid)
#undef ZP_TERM_UNARY

#define ZP_TERM_BINARY(name, op)                                                   \
  inline Term name(Term a, Term b) { return apply(OpKind::op, a, b); }             \
  inline Term name(Term a, double b) { return apply(OpKind::op, a, a.number(b)); } \
  inline Term name(double a, Term b) { return apply(OpKind::op, b.number(a), b); }
ZP_TERM_BINARY(operator+, add)
ZP_TERM_BINARY(operator-, sub)
ZP_TERM_BINARY(operator*, mul)
ZP_TERM_BINARY(operator/, div)
ZP_TERM_BINARY(operator<, less)
ZP_TERM_BINARY(operator>, greater)
ZP_TERM_BINARY(operator<=, less_equal)
ZP_TERM_BINARY(operator>=, greater_equal)
ZP_TERM_BINARY(operator==, equal)
ZP_TERM_BINARY(maximum, maximum)
ZP_TERM_BINARY(minimum, minimum)
ZP_TERM_BINARY(pow, pow)
#undef ZP_TERM_BINARY
inline Term operator&&(Term a, Term b) { return apply(OpKind::logical_and, a, b); }
inline Term operator||(Term a, Term b) { return apply(OpKind::logical_or, a, b); }

inline Term where(Term condition, Term a, Term b) { return {a.build(), a.build().add(OpKind::where, {condition.id(), a.id(), b.id()})}; }
inline Term where(Term condition, Term a, double b) { return where(condition, a, a.number(b)); }
inline Term where(Term condition, double a, Term b) { return where(condition, b.number(a), b); }

// Integers of other widths than 32 and 64 bits, and boolean, as int64, in which sums and products of them are exact or wrap as their own.
inline Term wide(Term x) { return is_floating(x.dtype()) || x.dtype() == DType::i32 || x.dtype() == DType::i64 ? x : x.cast(DType::i64); }
// The same in the order of the numbers: uint64 is moved to begin at the least int64, and `unordered` moves it back.
Term ordered(Term x);
Term unordered(Term y, DType dtype);
// The order turned round; of integers by their bits, as the least of them has no negative.
Term opposite(Term x);

inline Term matmul(Term a, Term b) { return apply(OpKind::matmul, a, b); }
// op: reduce_sum, reduce_mean or reduce_max over sorted axes.
inline Term reduce(OpKind op, Term x, const std::vector<int64_t>& axes, bool keepdims) {
  return apply(op, x, {{Attr::axes, axes}, {Attr::keepdims, int64_t{keepdims}}});
}
inline Term sum(Term x, const std::vector<int64_t>& axes) { return reduce(OpKind::reduce_sum, x, axes, false); }
// The same term where nothing changes.
inline Term times(Term x, double factor) { return factor == 1 ? x : x * factor; }
inline Term plus(Term x, double term) { return term == 0 ? x : x + term; }
inline Term clamp(Term x, double low, double high) { return minimum(maximum(x, low), high); }
Term slice(Term x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps, const Shape& shape);
// A contiguous part of one axis, or every `step`th element of it; one place of it, without the axis.
Term part(Term x, int64_t axis, int64_t start, int64_t count, int64_t step = 1);
Term item(Term x, int64_t axis, int64_t place);
// Along an axis that the terms have, or along a new one.
Term concat(const std::vector<Term>& parts, int64_t axis);
Term stack(const std::vector<Term>& items, int64_t axis);
std::vector<Term> terms_of(FoldingBuilder& build, const std::vector<ValueId>& ids);
inline Term gather(Term table, Term indices, int64_t axis) {
  return {table.build(), table.build().add(OpKind::gather, {table.id(), indices.id()}, {{Attr::axis, axis}})};
}
// table [B, R, …], indices [B, M] → [B, M, …]
Term gather_rows(Term table, Term indices);
// Axis `axis` behind the others, and back.
Term axis_last(Term x, int64_t axis);
Term axis_back(Term x, int64_t axis);
// 0, 1, … along `axis` of a shape that is 1 elsewhere; i64.
Term positions(FoldingBuilder& build, int64_t count, int64_t axis, int64_t rank);
// x less its largest element over `axes`, rounded down: exponentials of it neither overflow nor vanish, and no gradient goes through
// what was taken off, which is `shift`.
struct Shifted {
  Term x, shift;
};
Shifted shift_down(Term x, const std::vector<int64_t>& axes);

}  // namespace zeroplan
