// Unary elementwise operators: x → y of the same shape.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/type_name.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"
#include "graph/ops/scalar_reference.h"

namespace zeroplan {

namespace {

using Vjp = void (*)(VjpContext&);

std::vector<OutputType> infer_floating(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = floating_operand(graph, node, 0, "x");
  return {{gives_boolean(node.op) ? DType::boolean : x.dtype, x.shape}};
}

std::vector<OutputType> infer_number(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  if (x.dtype == DType::boolean) throw Error(fmt::format("x '{}' is {}; it must be a number", x.name, type_name(x.dtype)));
  return {{x.dtype, x.shape}};
}

std::vector<OutputType> infer_not(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  expect_dtype(x, DType::boolean, "x");
  return {{DType::boolean, x.shape}};
}

std::vector<OutputType> infer_cast(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  return {{dtype_attribute(node.attributes), operand(graph, node, 0, "x").shape}};
}

int64_t integer_unary(OpKind op, int64_t x, DType dtype) {
  const bool negative = x < 0 && dtype != DType::u64;
  const auto opposite = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
  if (op == OpKind::neg) return opposite;
  if (op == OpKind::abs) return negative ? opposite : x;
  check(op == OpKind::sign, "an integer operand reached a floating-point operator");
  return negative ? -1 : x != 0;
}

void evaluate_unary(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor& x = in[0];
  const int approximate = static_cast<int>(node.attributes.get_int(Attr::approximate, 0));
  for (int64_t i = 0; i < x.count(); ++i) {
    if (!is_floating(x.dtype()) && x.dtype() != DType::boolean)
      out[0].set_int(i, integer_unary(node.op, x.get_int(i), x.dtype()));
    else
      out[0].set(i, scalar_reference(node.op, x.get(i), 0, 0, approximate));
  }
}

// Towards zero; to uint64 also what int64 does not hold.
int64_t truncated(double x, DType to) {
  if (to == DType::u64 && x >= 0x1p63) return static_cast<int64_t>(x < 0x1p64 ? static_cast<uint64_t>(x) : ~uint64_t{0});
  return truncated_int(x);
}

// Integers wrap; anything to boolean is a test for ≠ 0. Floating-point numbers are exact in double, integers are rounded but once.
void evaluate_cast(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor& x = in[0];
  const DType to = out[0].dtype();
  if (is_floating(to) || to == DType::boolean) {
    out[0] = x.cast(to);
    return;
  }
  for (int64_t i = 0; i < x.count(); ++i) out[0].set_int(i, is_floating(x.dtype()) ? truncated(x.get(i), to) : int_at(x, i));
}

ValueId times(VjpContext& c, ValueId a, ValueId b) { return c.build.add(OpKind::mul, {a, b}); }

void neg_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::neg, {c.output_gradient()})); }
void abs_vjp(VjpContext& c) { c.set(0, times(c, c.output_gradient(), c.build.add(OpKind::sign, {c.input(0)}))); }
void exp_vjp(VjpContext& c) { c.set(0, times(c, c.output_gradient(), c.output(0))); }
void log_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::div, {c.output_gradient(), c.input(0)})); }
void sin_vjp(VjpContext& c) { c.set(0, times(c, c.output_gradient(), c.build.add(OpKind::cos, {c.input(0)}))); }
void cos_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::neg, {times(c, c.output_gradient(), c.build.add(OpKind::sin, {c.input(0)}))})); }
void sqrt_vjp(VjpContext& c) {  // dy / 2y
  const ValueId half = c.build.scalar(0.5, c.build.dtype(c.output(0)));
  c.set(0, c.build.add(OpKind::div, {times(c, c.output_gradient(), half), c.output(0)}));
}
void reciprocal_vjp(VjpContext& c) {  // -dy y²
  const ValueId y = c.output(0);
  c.set(0, c.build.add(OpKind::neg, {times(c, c.output_gradient(), times(c, y, y))}));
}
void erf_vjp(VjpContext& c) {  // dy · 2/√π · exp(-x²)
  const ValueId square = times(c, c.input(0), c.input(0));
  const ValueId bell = c.build.add(OpKind::exp, {c.build.add(OpKind::neg, {square})});
  const ValueId scale = c.build.scalar(1.1283791670955126, c.build.dtype(c.input(0)));
  c.set(0, times(c, c.output_gradient(), times(c, bell, scale)));
}
// The rounding ops pass no gradient, or with straight_through all of it, as if they were not there.
void rounding_vjp(VjpContext& c) {
  if (c.node.attributes.get_int(Attr::straight_through, 0) != 0) c.set(0, c.output_gradient());
}

ValueId plus(VjpContext& c, ValueId a, double b) { return c.build.add(OpKind::add, {a, c.build.scalar(b, c.build.dtype(a))}); }
ValueId square_of(VjpContext& c, ValueId x) { return times(c, x, x); }
ValueId one_less_square(VjpContext& c) { return plus(c, c.build.add(OpKind::neg, {square_of(c, c.input(0))}), 1); }
void set_quotient(VjpContext& c, ValueId divisor) { c.set(0, c.build.add(OpKind::div, {c.output_gradient(), divisor})); }

void tan_vjp(VjpContext& c) { c.set(0, times(c, c.output_gradient(), plus(c, square_of(c, c.output(0)), 1))); }
void asin_vjp(VjpContext& c) { set_quotient(c, c.build.add(OpKind::sqrt, {one_less_square(c)})); }
void acos_vjp(VjpContext& c) { set_quotient(c, c.build.add(OpKind::neg, {c.build.add(OpKind::sqrt, {one_less_square(c)})})); }
void atan_vjp(VjpContext& c) { set_quotient(c, plus(c, square_of(c, c.input(0)), 1)); }
void sinh_vjp(VjpContext& c) { c.set(0, times(c, c.output_gradient(), c.build.add(OpKind::cosh, {c.input(0)}))); }
void cosh_vjp(VjpContext& c) { c.set(0, times(c, c.output_gradient(), c.build.add(OpKind::sinh, {c.input(0)}))); }
void asinh_vjp(VjpContext& c) { set_quotient(c, c.build.add(OpKind::sqrt, {plus(c, square_of(c, c.input(0)), 1)})); }
void acosh_vjp(VjpContext& c) { set_quotient(c, c.build.add(OpKind::sqrt, {plus(c, square_of(c, c.input(0)), -1)})); }
void atanh_vjp(VjpContext& c) { set_quotient(c, one_less_square(c)); }
void tanh_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::tanh_grad, {c.output_gradient(), c.output(0)})); }
void sigmoid_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::sigmoid_grad, {c.output_gradient(), c.output(0)})); }
void relu_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::relu_grad, {c.output_gradient(), c.input(0)})); }
void silu_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::silu_grad, {c.output_gradient(), c.input(0)})); }
void gelu_vjp(VjpContext& c) {
  const Attributes attributes = {{Attr::approximate, c.node.attributes.get_int(Attr::approximate, 0)}};
  c.set(0, c.build.add(OpKind::gelu_grad, {c.output_gradient(), c.input(0)}, attributes));
}
// With straight_through 0 a cast passes no gradient.
void cast_vjp(VjpContext& c) {
  if (c.node.attributes.get_int(Attr::straight_through, 1) == 0) return;
  const DType from = c.build.dtype(c.input(0)), to = c.build.dtype(c.output(0));
  if (!is_floating(from) || !is_floating(to)) return;
  c.set(0, c.build.add(OpKind::cast, {c.output_gradient()}, {{Attr::dtype, dtype_value(from)}}));
}

OpDef unary_def(std::vector<OutputType> (*infer)(const Graph&, const Node&), Vjp vjp) {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate_unary;
  def.in_place = {{0, 0}};
  def.accepts = accept_any_strides;
  return def;
}

}  // namespace

OpDef neg_def() { return unary_def(infer_number, neg_vjp); }
OpDef abs_def() { return unary_def(infer_number, abs_vjp); }
OpDef sign_def() { return unary_def(infer_number, zero_vjp); }
OpDef sqrt_def() { return unary_def(infer_floating, sqrt_vjp); }
OpDef reciprocal_def() { return unary_def(infer_floating, reciprocal_vjp); }
OpDef exp_def() { return unary_def(infer_floating, exp_vjp); }
OpDef log_def() { return unary_def(infer_floating, log_vjp); }
OpDef sin_def() { return unary_def(infer_floating, sin_vjp); }
OpDef cos_def() { return unary_def(infer_floating, cos_vjp); }
OpDef tan_def() { return unary_def(infer_floating, tan_vjp); }
OpDef asin_def() { return unary_def(infer_floating, asin_vjp); }
OpDef acos_def() { return unary_def(infer_floating, acos_vjp); }
OpDef atan_def() { return unary_def(infer_floating, atan_vjp); }
OpDef sinh_def() { return unary_def(infer_floating, sinh_vjp); }
OpDef cosh_def() { return unary_def(infer_floating, cosh_vjp); }
OpDef asinh_def() { return unary_def(infer_floating, asinh_vjp); }
OpDef acosh_def() { return unary_def(infer_floating, acosh_vjp); }
OpDef atanh_def() { return unary_def(infer_floating, atanh_vjp); }
OpDef ceil_def() { return unary_def(infer_floating, rounding_vjp); }
OpDef floor_def() { return unary_def(infer_floating, rounding_vjp); }
OpDef round_def() { return unary_def(infer_floating, rounding_vjp); }
OpDef tanh_def() { return unary_def(infer_floating, tanh_vjp); }
OpDef sigmoid_def() { return unary_def(infer_floating, sigmoid_vjp); }
OpDef erf_def() { return unary_def(infer_floating, erf_vjp); }
OpDef relu_def() { return unary_def(infer_floating, relu_vjp); }
OpDef gelu_def() { return unary_def(infer_floating, gelu_vjp); }
OpDef silu_def() { return unary_def(infer_floating, silu_vjp); }
OpDef logical_not_def() { return unary_def(infer_not, zero_vjp); }
OpDef is_nan_def() { return unary_def(infer_floating, zero_vjp); }
OpDef cast_def() {
  OpDef def = unary_def(infer_cast, cast_vjp);
  def.evaluate = evaluate_cast;
  return def;
}

}  // namespace zeroplan
