// Unary, binary and ternary elementwise operators, casts, and their close relatives.
#include "graph/onnx/quantize.h"

namespace zeroplan {
namespace {

// Max, Min, Sum, Mean take any number of operands.
template <OpKind op>
void variadic(DecodeContext& c) {
  ValueId y = c.in(0);
  for (int i = 1; i < c.count(); ++i) y = c.build.add(op, {y, c.in(i)});
  c.out(0, y);
}

void mean(DecodeContext& c) {
  ValueId y = c.in(0);
  for (int i = 1; i < c.count(); ++i) y = c.build.add(OpKind::add, {y, c.in(i)});
  c.out(0, c.build.add(OpKind::mul, {y, c.build.scalar(1.0 / c.count(), c.build.dtype(y))}));
}

// Of integers: by a floating-point exponent in double, else in 64 bits, which wrap as fewer do.
ValueId integer_power(DecodeContext& c) {
  const DType base = c.build.dtype(c.in(0)), given = c.build.dtype(c.in(1));
  const DType wide = is_floating(given) ? DType::f64 : base == DType::u64 || given == DType::u64 ? DType::u64 : DType::i64;
  const auto cast = [&](int input) { return c.build.cast(c.in(input), wide); };
  const ValueId y = c.build.cast(c.build.add(OpKind::pow, {cast(0), cast(1)}), base);
  const bool may_be_negative =
      base == DType::u64 && (given == DType::i64 || given == DType::i32 || given == DType::i16 || given == DType::i8);
  if (!may_be_negative) return y;
  const ValueId negative = c.build.add(OpKind::less, {c.in(1), c.build.scalar(0, given)});
  const ValueId one = c.build.add(OpKind::equal, {c.in(0), c.build.scalar(1, base)});
  return c.build.add(OpKind::where, {negative, c.build.cast(one, base), y});
}

// The exponent may be of another type than the base.
void power(DecodeContext& c) {
  if (!is_floating(c.build.dtype(c.in(0)))) return c.out(0, integer_power(c));
  const ValueId exponent = c.build.cast(c.in(1), c.build.dtype(c.in(0)));
  if (c.build.is_constant(exponent) && elements(c.build.shape(exponent)) == 1 && is_floating(c.build.dtype(exponent))) {
    const bool keeps_rank = c.build.shape(exponent).size() <= c.shape(0).size();
    const double value = c.build.graph().values[exponent].constant.get(0);
    if (value == 1 && keeps_rank) return c.out(0, c.in(0));
    if (value == 2 && keeps_rank) return c.out(0, c.build.add(OpKind::mul, {c.in(0), c.in(0)}));
  }
  c.out(0, c.build.add(OpKind::pow, {c.in(0), exponent}));
}

void cast_to(DecodeContext& c, DType to) {
  const bool from_integers = is_floating(to) && !is_floating(c.build.dtype(c.in(0)));
  c.out(0, from_integers ? whole_numbers({c.build, c.in(0)}, to).id() : c.build.cast(c.in(0), to));
}

void cast(DecodeContext& c) { cast_to(c, c.dtype_of(c.attr_type("to", 0), "it casts to")); }
void cast_like(DecodeContext& c) { cast_to(c, c.build.dtype(c.in(1))); }

void identity(DecodeContext& c) { c.out(0, c.in(0)); }

// Bounds are attributes below opset 11, inputs from there on; the model was converted, so they are inputs.
void clip(DecodeContext& c) {
  ValueId y = c.in(0);
  if (c.has(1)) y = c.build.add(OpKind::maximum, {y, c.in(1)});
  if (c.has(2)) y = c.build.add(OpKind::minimum, {y, c.in(2)});
  c.out(0, y);
}

void where(DecodeContext& c) { c.out(0, c.build.add(OpKind::where, {c.in(0), c.in(1), c.in(2)})); }

}  // namespace

void add_elementwise_decoders(DecoderTable& t) {
  t["Neg"] = unary<OpKind::neg>;
  t["Sqrt"] = unary<OpKind::sqrt>;
  t["Reciprocal"] = unary<OpKind::reciprocal>;
  t["Exp"] = unary<OpKind::exp>;
  t["Log"] = unary<OpKind::log>;
  t["Sin"] = unary<OpKind::sin>;
  t["Cos"] = unary<OpKind::cos>;
  t["Tanh"] = unary<OpKind::tanh>;
  t["Sigmoid"] = unary<OpKind::sigmoid>;
  t["Erf"] = unary<OpKind::erf>;
  t["Not"] = {unary<OpKind::logical_not>, no_gradient()};
  t["IsNaN"] = {unary<OpKind::is_nan>, no_gradient()};
  t["Add"] = binary<OpKind::add>;
  t["Sub"] = binary<OpKind::sub>;
  t["Mul"] = binary<OpKind::mul>;
  t["Div"] = binary<OpKind::div>;
  t["And"] = {binary<OpKind::logical_and>, no_gradient()};
  t["Or"] = {binary<OpKind::logical_or>, no_gradient()};
  t["Less"] = {binary<OpKind::less>, no_gradient()};
  t["Greater"] = {binary<OpKind::greater>, no_gradient()};
  t["LessOrEqual"] = {binary<OpKind::less_equal>, no_gradient()};
  t["GreaterOrEqual"] = {binary<OpKind::greater_equal>, no_gradient()};
  t["Equal"] = {binary<OpKind::equal>, no_gradient()};
  t["Pow"] = {power, gradient_to_all().with_setting({1}, "an exponent")};
  t["Max"] = variadic<OpKind::maximum>;
  t["Min"] = variadic<OpKind::minimum>;
  t["Sum"] = variadic<OpKind::add>;
  t["Mean"] = mean;
  t["Cast"] = {cast, moves_input()};
  t["CastLike"] = {cast_like, moves_input()};
  t["Identity"] = {identity, moves_input()};
  t["Clip"] = {clip, gradient_to_all().with_setting({1, 2}, "a bound")};
  t["Where"] = {where, gradient_to({1, 2})};
}

}  // namespace zeroplan
