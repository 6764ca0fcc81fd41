// Arithmetic beyond the four operations: rounding, remainders, tests, trigonometric functions, signs of integers, determinants.
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

void relu(DecodeContext& c) {
  const Term x = term(c, 0);
  result(c, is_floating(x.dtype()) ? apply(OpKind::relu, x) : maximum(x, 0));
}

void logical_xor(DecodeContext& c) { result(c, !(term(c, 0) == term(c, 1))); }

void is_infinite(DecodeContext& c) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Term x = term(c, 0);
  const bool low = c.attr_int("detect_negative", 1) != 0, high = c.attr_int("detect_positive", 1) != 0;
  if (low && high) return result(c, abs(x) == kInfinity);
  result(c, low ? x == -kInfinity : high ? x == kInfinity : x == std::numeric_limits<double>::quiet_NaN());  // nothing equals NaN
}

void modulo(DecodeContext& c) {
  const bool of_dividend = c.attr_int("fmod", 0) != 0;
  result(c, apply(of_dividend ? OpKind::remainder : OpKind::modulo, term(c, 0), term(c, 1)));
}

HostTensor square_mask(int64_t n, DType dtype, bool (*inside)(int64_t row, int64_t column)) {
  HostTensor mask(dtype, {n, n});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) mask.set(i * n + j, inside(i, j));
  return mask;
}

// R. Bird, "A simple division-free algorithm for computing determinants": x becomes μ(x)·a, n - 1 times, where μ keeps what is right
// of the diagonal and puts the negated sum of the later diagonal elements on it.
void determinant(DecodeContext& c) {
  constexpr int64_t kLargest = 8;  // beyond it, sums that cancel lose too many digits
  const Term a = term(c, 0);
  const int64_t rank = a.rank(), n = rank < 2 ? 0 : a.shape()[rank - 1];
  if (rank < 2 || a.shape()[rank - 2] != n) throw Error(fmt::format("its operand of shape {} is no square matrix", to_string(a.shape())));
  if (n < 1 || n > kLargest) throw Error(fmt::format("determinants of {0}x{0} matrices are not supported; at most {1}x{1}", n, kLargest));
  const auto mask = [&](bool (*inside)(int64_t, int64_t)) { return Term(c.build, c.build.constant(square_mask(n, a.dtype(), inside))); };
  const Term diagonal = mask([](int64_t i, int64_t j) { return i == j; });
  const Term right = mask([](int64_t i, int64_t j) { return j > i; }), below = mask([](int64_t i, int64_t j) { return i > j; });
  Term x = a;
  for (int64_t k = 1; k < n; ++k) {
    const Term later = matmul(reduce(OpKind::reduce_sum, x * diagonal, {rank - 2}, true), below);
    x = matmul(x * right - later * diagonal, a);
  }
  const Term corner = part(part(x, rank - 2, 0, 1), rank - 1, 0, 1);
  const Term y = corner.reshape(Shape(a.shape().begin(), a.shape().end() - 2));
  result(c, n % 2 == 0 ? -y : y);
}

}  // namespace

void add_arithmetic_decoders(DecoderTable& t) {
  t["Ceil"] = {unary<OpKind::ceil>, no_gradient()};
  t["Floor"] = {unary<OpKind::floor>, no_gradient()};
  t["Round"] = {unary<OpKind::round>, no_gradient()};
  t["Tan"] = unary<OpKind::tan>;
  t["Asin"] = unary<OpKind::asin>;
  t["Acos"] = unary<OpKind::acos>;
  t["Atan"] = unary<OpKind::atan>;
  t["Sinh"] = unary<OpKind::sinh>;
  t["Cosh"] = unary<OpKind::cosh>;
  t["Asinh"] = unary<OpKind::asinh>;
  t["Acosh"] = unary<OpKind::acosh>;
  t["Atanh"] = unary<OpKind::atanh>;
  t["Abs"] = unary<OpKind::abs>;
  t["Sign"] = {unary<OpKind::sign>, no_gradient()};
  t["Relu"] = relu;
  t["Xor"] = {logical_xor, no_gradient()};
  t["IsInf"] = {is_infinite, no_gradient()};
  t["Mod"] = modulo;
  t["Det"] = determinant;
}

}  // namespace zeroplan
