// Binary elementwise operators with NumPy broadcasting: a, b → y.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"
#include "graph/ops/scalar_reference.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer_binary(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& a = operand(graph, node, 0, "a");
  const Value& b = operand(graph, node, 1, "b");
  expect_dtype(b, a.dtype, "b");
  const bool logical = node.op == OpKind::logical_and || node.op == OpKind::logical_or;
  if (logical)
    expect_dtype(a, DType::boolean, "a");
  else if (a.dtype == DType::boolean && node.op != OpKind::equal)
    throw Error(fmt::format("a '{}' is boolean, which {} does not take: insert a cast", a.name, op_name(node.op)));
  else if (is_floating(a.dtype) && takes_integers_alone(node.op))
    throw Error(fmt::format("a '{}' is {}, but {} takes integers alone", a.name, type_name(a.dtype), op_name(node.op)));
  return {{gives_boolean(node.op) ? DType::boolean : a.dtype, broadcast_shapes(a.shape, b.shape)}};
}

std::vector<OutputType> infer_gradient(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  floating_operand(graph, node, 0, "dy");
  return infer_binary(graph, node);
}

// T: int64_t, or uint64_t for that type; results wrap, as the kernels' do.
template <typename T>
T integer_power(T base, T exponent) {
  const T minus_one = static_cast<T>(-1);
  if (exponent < T{0}) {
    if (base == 0) throw Error("integer pow: 0 to a negative exponent");
    return base == 1 ? 1 : base == minus_one ? (exponent % 2 ? minus_one : 1) : 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<T>(result);
}

// The least number over -1 does not fit.
template <typename T>
bool overflows(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}

template <typename T>
T integer_quotient(T a, T b) {
  if (b == 0) throw Error("integer division by zero");
  return overflows(b) ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a / b;  // towards zero
}

template <typename T>
T integer_remainder(OpKind op, T a, T b) {
  if (b == 0) throw Error("integer remainder of a division by zero");
  const T rest = overflows(b) ? 0 : a % b;
  return op == OpKind::modulo && rest != 0 && (rest < T{0}) != (b < T{0}) ? rest + b : rest;
}

// Shifts by 64 or more, or by a negative number, leave nothing but the sign.
template <typename T>
T bit_binary(OpKind op, T a, T b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case OpKind::shift_left: return static_cast<T>(ub < 64 ? ua << ub : 0);
    case OpKind::shift_right: return ub < 64 ? a >> ub : static_cast<T>(a < T{0} ? -1 : 0);
    case OpKind::bit_and: return a & b;
    case OpKind::bit_or: return a | b;
    case OpKind::bit_xor: return a ^ b;
    default: break;
  }
  check(false, "an integer operand reached a floating-point operator");
  return 0;
}

template <typename T>
T integer_binary(OpKind op, T a, T b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case OpKind::add: return static_cast<T>(ua + ub);
    case OpKind::sub: return static_cast<T>(ua - ub);
    case OpKind::mul: return static_cast<T>(ua * ub);
    case OpKind::div: return integer_quotient(a, b);
    case OpKind::pow: return integer_power(a, b);
    case OpKind::maximum: return a > b ? a : b;
    case OpKind::minimum: return a < b ? a : b;
    case OpKind::equal: return a == b;
    case OpKind::less: return a < b;
    case OpKind::greater: return a > b;
    case OpKind::less_equal: return a <= b;
    case OpKind::greater_equal: return a >= b;
    case OpKind::logical_and: return a && b;
    case OpKind::logical_or: return a || b;
    case OpKind::modulo:
    case OpKind::remainder: return integer_remainder(op, a, b);
    default: return bit_binary(op, a, b);
  }
}

int64_t integer_result(OpKind op, const HostTensor& a, int64_t i, const HostTensor& b, int64_t k) {
  const int64_t x = int_at(a, i), y = int_at(b, k);
  if (a.dtype() != DType::u64) return integer_binary(op, x, y);
  return static_cast<int64_t>(integer_binary(op, static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

void evaluate_binary(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &a = in[0], &b = in[1];
  const int approximate = static_cast<int>(node.attributes.get_int(Attr::approximate, 0));
  const bool floating = is_floating(a.dtype());
  for_each_index(out[0].shape(), [&](const Index& index, int64_t n) {
    const int64_t ia = broadcast_index(index, a.shape()), ib = broadcast_index(index, b.shape());
    if (floating)
      out[0].set(n, scalar_reference(node.op, a.get(ia), b.get(ib), 0, approximate));
    else
      set_any_int(out[0], n, integer_result(node.op, a, ia, b, ib));
  });
}

ValueId emit(VjpContext& c, OpKind op, ValueId a, ValueId b) { return c.build.add(op, {a, b}); }
ValueId negate(VjpContext& c, ValueId x) { return c.build.add(OpKind::neg, {x}); }
ValueId select(VjpContext& c, ValueId condition, ValueId a, ValueId b) { return c.build.add(OpKind::where, {condition, a, b}); }

// Sets the gradient of operand i, summed over the axes it was broadcast along.
void set_summed(VjpContext& c, int i, ValueId gradient) {
  const Shape shape = c.build.shape(c.input(i));
  c.set(i, c.build.sum_to(gradient, shape));
}

void add_vjp(VjpContext& c) {
  for (int i = 0; i < 2; ++i)
    if (c.needs(i)) set_summed(c, i, c.output_gradient());
}

void sub_vjp(VjpContext& c) {
  if (c.needs(0)) set_summed(c, 0, c.output_gradient());
  if (!c.needs(1)) return;
  const Shape shape = c.build.shape(c.input(1));
  c.set(1, negate(c, c.build.sum_to(c.output_gradient(), shape)));
}

void mul_vjp(VjpContext& c) {
  if (c.needs(0)) set_summed(c, 0, emit(c, OpKind::mul, c.output_gradient(), c.input(1)));
  if (c.needs(1)) set_summed(c, 1, emit(c, OpKind::mul, c.output_gradient(), c.input(0)));
}

void div_vjp(VjpContext& c) {
  const ValueId scaled = emit(c, OpKind::div, c.output_gradient(), c.input(1));
  if (c.needs(0)) set_summed(c, 0, scaled);
  if (c.needs(1)) set_summed(c, 1, negate(c, emit(c, OpKind::mul, scaled, c.output(0))));  // -dy a / b²
}

// p · x^(p-1) for an exponent that is known: no logarithm, and no power at all where p - 1 is 1.
void constant_power_vjp(VjpContext& c, HostTensor exponent) {
  const DType dtype = exponent.dtype();
  HostTensor lowered(dtype, exponent.shape());
  bool all_zero = true, all_two = true;
  for (int64_t i = 0; i < exponent.count(); ++i) {
    const double p = exponent.get(i);
    lowered.set(i, p == 0 ? 0 : p - 1);  // x^0 is constant: 0 · x^0 instead of 0 · x^-1
    all_zero = all_zero && p == 0;
    all_two = all_two && p == 2;
  }
  if (all_zero) return;
  const ValueId power = all_two ? c.input(0) : emit(c, OpKind::pow, c.input(0), c.build.constant(lowered));
  const ValueId slope = emit(c, OpKind::mul, power, all_two ? c.build.scalar(2, dtype) : c.input(1));
  set_summed(c, 0, emit(c, OpKind::mul, c.output_gradient(), slope));
}

void general_power_vjp(VjpContext& c) {
  const DType dtype = c.build.dtype(c.input(0));
  const ValueId x = c.input(0), p = c.input(1), dy = c.output_gradient();
  const ValueId zero = c.build.scalar(0, dtype);
  if (c.needs(0)) {
    const ValueId power = emit(c, OpKind::pow, x, emit(c, OpKind::sub, p, c.build.scalar(1, dtype)));
    const ValueId slope = select(c, emit(c, OpKind::equal, p, zero), zero, emit(c, OpKind::mul, p, power));
    set_summed(c, 0, emit(c, OpKind::mul, dy, slope));
  }
  if (c.needs(1)) {  // 0^p stays 0 for p near its value: no gradient there instead of 0 · log 0
    const ValueId slope = emit(c, OpKind::mul, c.output(0), c.build.add(OpKind::log, {x}));
    const ValueId safe = select(c, emit(c, OpKind::equal, x, zero), zero, slope);
    set_summed(c, 1, emit(c, OpKind::mul, dy, safe));
  }
}

void pow_vjp(VjpContext& c) {
  const Value& exponent = c.build.graph().value(c.input(1));
  if (exponent.kind == ValueKind::constant && !c.needs(1))
    constant_power_vjp(c, exponent.constant);
  else
    general_power_vjp(c);
}

// The operand that was chosen gets dy; of two equal ones each gets half.
void choice_vjp(VjpContext& c, OpKind better) {
  const DType dtype = c.build.dtype(c.output(0));
  const ValueId dy = c.output_gradient();
  const ValueId zero = c.build.scalar(0, dtype);
  const ValueId half = emit(c, OpKind::mul, dy, c.build.scalar(0.5, dtype));
  const ValueId tied = select(c, emit(c, OpKind::equal, c.input(0), c.input(1)), half, zero);
  for (int i = 0; i < 2; ++i)
    if (c.needs(i)) set_summed(c, i, select(c, emit(c, better, c.input(i), c.input(1 - i)), dy, tied));
}

void maximum_vjp(VjpContext& c) { choice_vjp(c, OpKind::greater); }
void minimum_vjp(VjpContext& c) { choice_vjp(c, OpKind::less); }

// y = a - n b with whole n = (a - y) / b, which is constant between the jumps.
void remainder_vjp(VjpContext& c) {
  const ValueId dy = c.output_gradient();
  if (c.needs(0)) set_summed(c, 0, dy);
  if (!c.needs(1)) return;
  const ValueId whole = emit(c, OpKind::div, emit(c, OpKind::sub, c.input(0), c.output(0)), c.input(1));
  set_summed(c, 1, negate(c, emit(c, OpKind::mul, dy, c.build.add(OpKind::round, {whole}))));
}

OpDef binary_def(void (*vjp)(VjpContext&)) {
  OpDef def;
  def.infer = infer_binary;
  def.vjp = vjp;
  def.evaluate = evaluate_binary;
  def.in_place = {{0, 0}, {0, 1}};
  def.accepts = accept_any_strides;
  return def;
}

OpDef gradient_def() {
  OpDef def = binary_def(nullptr);
  def.infer = infer_gradient;
  return def;
}

}  // namespace

OpDef add_def() { return binary_def(add_vjp); }
OpDef sub_def() { return binary_def(sub_vjp); }
OpDef mul_def() { return binary_def(mul_vjp); }
OpDef div_def() { return binary_def(div_vjp); }
OpDef pow_def() { return binary_def(pow_vjp); }
OpDef maximum_def() { return binary_def(maximum_vjp); }
OpDef minimum_def() { return binary_def(minimum_vjp); }
OpDef equal_def() { return binary_def(zero_vjp); }
OpDef less_def() { return binary_def(zero_vjp); }
OpDef greater_def() { return binary_def(zero_vjp); }
OpDef less_equal_def() { return binary_def(zero_vjp); }
OpDef greater_equal_def() { return binary_def(zero_vjp); }
OpDef logical_and_def() { return binary_def(zero_vjp); }
OpDef logical_or_def() { return binary_def(zero_vjp); }
OpDef modulo_def() { return binary_def(remainder_vjp); }
OpDef remainder_def() { return binary_def(remainder_vjp); }
OpDef shift_left_def() { return binary_def(zero_vjp); }
OpDef shift_right_def() { return binary_def(zero_vjp); }
OpDef bit_and_def() { return binary_def(zero_vjp); }
OpDef bit_or_def() { return binary_def(zero_vjp); }
OpDef bit_xor_def() { return binary_def(zero_vjp); }
OpDef relu_grad_def() { return gradient_def(); }
OpDef gelu_grad_def() { return gradient_def(); }
OpDef silu_grad_def() { return gradient_def(); }
OpDef tanh_grad_def() { return gradient_def(); }
OpDef sigmoid_grad_def() { return gradient_def(); }

}  // namespace zeroplan
