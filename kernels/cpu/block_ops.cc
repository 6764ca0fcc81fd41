#include "kernels/cpu/block_ops.h"

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/scalar/elementwise.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

template <typename T, typename Op>
void unary_block(const T* a, const T*, const T*, T* y, int64_t n) {
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, Op::apply(at.load(a))); });
}
template <typename T, typename Op>
void binary_block(const T* a, const T* b, const T*, T* y, int64_t n) {
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, Op::apply(at.load(a), at.load(b))); });
}
template <typename T, typename Op>
void ternary_block(const T* a, const T* b, const T* c, T* y, int64_t n) {
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, Op::apply(at.load(a), at.load(b), at.load(c))); });
}

// Common exponents need no call of pow; x^2 and x^3 are exact products up to rounding.
template <typename T>
void pow_block(const T* a, const T* b, const T* c, T* y, int64_t n) {
  const T p = b[0];
  bool same = p == 2 || p == 3 || p == T(0.5) || p == 1 || p == -1;
  for (int64_t i = 1; i < n && same; ++i) same = b[i] == p;
  if (!same) return binary_block<T, Pow>(a, b, c, y, n);
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA {
    const Vec<T> x = at.load(a);
    if (p == 2)
      at.store(y, x * x);
    else if (p == 3)
      at.store(y, x * x * x);
    else if (p == 1)
      at.store(y, x);
    else if (p == -1)
      at.store(y, Vec<T>(T(1)) / x);
    else
      at.store(y, sqrt(x + Vec<T>(T(0))));  // + 0: pow(-0, ½) is +0
  });
}

template <typename T>
BlockFn<T> library(OpKind op) {
  switch (op) {
    case OpKind::sin: return unary_block<T, Sin>;
    case OpKind::cos: return unary_block<T, Cos>;
    case OpKind::ceil: return unary_block<T, Ceil>;
    case OpKind::floor: return unary_block<T, Floor>;
    case OpKind::round: return unary_block<T, RoundHalfEven>;
    case OpKind::tan: return unary_block<T, Tan>;
    case OpKind::asin: return unary_block<T, Asin>;
    case OpKind::acos: return unary_block<T, Acos>;
    case OpKind::atan: return unary_block<T, Atan>;
    case OpKind::sinh: return unary_block<T, Sinh>;
    case OpKind::cosh: return unary_block<T, Cosh>;
    case OpKind::asinh: return unary_block<T, Asinh>;
    case OpKind::acosh: return unary_block<T, Acosh>;
    case OpKind::atanh: return unary_block<T, Atanh>;
    case OpKind::modulo: return binary_block<T, Modulo>;
    case OpKind::remainder: return binary_block<T, Remainder>;
    default: return nullptr;
  }
}

template <typename T>
BlockFn<T> transcendental(OpKind op, bool approximate) {
  switch (op) {
    case OpKind::sqrt: return unary_block<T, Sqrt>;
    case OpKind::reciprocal: return unary_block<T, Reciprocal>;
    case OpKind::exp: return unary_block<T, Exp>;
    case OpKind::log: return unary_block<T, Log>;
    case OpKind::tanh: return unary_block<T, Tanh>;
    case OpKind::sigmoid: return unary_block<T, Sigmoid>;
    case OpKind::erf: return unary_block<T, Erf>;
    case OpKind::gelu: return approximate ? unary_block<T, GeluTanh> : unary_block<T, GeluErf>;
    case OpKind::silu: return unary_block<T, Silu>;
    case OpKind::is_nan: return unary_block<T, IsNan>;
    case OpKind::pow: return pow_block<T>;
    case OpKind::gelu_grad: return approximate ? binary_block<T, GeluTanhGrad> : binary_block<T, GeluErfGrad>;
    case OpKind::silu_grad: return binary_block<T, SiluGrad>;
    default: return nullptr;
  }
}

template <typename T>
BlockFn<T> arithmetic(OpKind op) {
  switch (op) {
    case OpKind::cast: return unary_block<T, Identity>;
    case OpKind::neg: return unary_block<T, Neg>;
    case OpKind::abs: return unary_block<T, Abs>;
    case OpKind::sign: return unary_block<T, Sign>;
    case OpKind::relu: return unary_block<T, Relu>;
    case OpKind::logical_not: return unary_block<T, LogicalNot>;
    case OpKind::add: return binary_block<T, Add>;
    case OpKind::sub: return binary_block<T, Sub>;
    case OpKind::mul: return binary_block<T, Mul>;
    case OpKind::div: return binary_block<T, Div>;
    case OpKind::maximum: return binary_block<T, Maximum>;
    case OpKind::minimum: return binary_block<T, Minimum>;
    case OpKind::relu_grad: return binary_block<T, ReluGrad>;
    case OpKind::tanh_grad: return binary_block<T, TanhGrad>;
    case OpKind::sigmoid_grad: return binary_block<T, SigmoidGrad>;
    default: return nullptr;
  }
}

template <typename T>
BlockFn<T> logical(OpKind op) {
  switch (op) {
    case OpKind::equal: return binary_block<T, Equal>;
    case OpKind::less: return binary_block<T, Less>;
    case OpKind::greater: return binary_block<T, Greater>;
    case OpKind::less_equal: return binary_block<T, LessEqual>;
    case OpKind::greater_equal: return binary_block<T, GreaterEqual>;
    case OpKind::logical_and: return binary_block<T, LogicalAnd>;
    case OpKind::logical_or: return binary_block<T, LogicalOr>;
    case OpKind::where: return ternary_block<T, Where>;
    default: return nullptr;
  }
}

}  // namespace

template <typename T>
BlockFn<T> block_function(OpKind op, int64_t approximate) {
  BlockFn<T> found = logical<T>(op);
  if (!found) found = arithmetic<T>(op);
  if (!found) found = transcendental<T>(op, approximate != 0);
  if (!found) found = library<T>(op);
  check(found != nullptr, "not an elementwise operator");
  return found;
}
template BlockFn<float> block_function<float>(OpKind, int64_t);
template BlockFn<double> block_function<double>(OpKind, int64_t);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
