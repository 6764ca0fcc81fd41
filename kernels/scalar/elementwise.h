#pragma once
// One functor per elementwise operator: V is a number or lanes of numbers, computed in that type. Comparisons give 0 or 1.
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

#define ZP_UNARY(name, expression)  \
  struct name {                     \
    template <typename V>           \
    static ZP_DEVICE V apply(V x) { \
      return expression;            \
    }                               \
  };
#define ZP_BINARY(name, expression)      \
  struct name {                          \
    template <typename V>                \
    static ZP_DEVICE V apply(V a, V b) { \
      return expression;                 \
    }                                    \
  };
#define ZP_TERNARY(name, expression)          \
  struct name {                               \
    template <typename V>                     \
    static ZP_DEVICE V apply(V a, V b, V c) { \
      return expression;                      \
    }                                         \
  };

ZP_UNARY(Identity, x)
ZP_UNARY(Neg, -x)
ZP_UNARY(Abs, absolute(x))
ZP_UNARY(Sign, select(x > V(0), V(1), select(x < V(0), V(-1), x)))  // nan stays nan
ZP_UNARY(Sqrt, sqrt(x))
ZP_UNARY(Reciprocal, V(1) / x)
ZP_UNARY(Exp, exp(x))
ZP_UNARY(Log, log(x))
#define ZP_LIBRARY(name) lanewise(x, [](auto e) { return sizeof(e) == 4 ? ZP_LIBM(name##f)(e) : ZP_LIBM(name)(e); })
ZP_UNARY(Sin, ZP_LIBRARY(sin))
ZP_UNARY(Cos, ZP_LIBRARY(cos))
ZP_UNARY(Ceil, ZP_LIBRARY(ceil))
ZP_UNARY(Floor, ZP_LIBRARY(floor))
ZP_UNARY(RoundHalfEven, ZP_LIBRARY(rint))
ZP_UNARY(Tan, ZP_LIBRARY(tan))
ZP_UNARY(Asin, ZP_LIBRARY(asin))
ZP_UNARY(Acos, ZP_LIBRARY(acos))
ZP_UNARY(Atan, ZP_LIBRARY(atan))
ZP_UNARY(Sinh, ZP_LIBRARY(sinh))
ZP_UNARY(Cosh, ZP_LIBRARY(cosh))
ZP_UNARY(Asinh, ZP_LIBRARY(asinh))
ZP_UNARY(Acosh, ZP_LIBRARY(acosh))
ZP_UNARY(Atanh, ZP_LIBRARY(atanh))
ZP_UNARY(Tanh, tanh(x))
ZP_UNARY(Sigmoid, sigmoid(x))
ZP_UNARY(Erf, erf(x))
ZP_UNARY(Relu, select(x < V(0), V(0), x))
ZP_UNARY(Silu, x* sigmoid(x))
ZP_UNARY(LogicalNot, select(x == V(0), V(1), V(0)))
ZP_UNARY(IsNan, select(x != x, V(1), V(0)))

ZP_BINARY(Remainder, lanewise(a, b, [](auto x, auto y) { return sizeof(x) == 4 ? ZP_LIBM(fmodf)(x, y) : ZP_LIBM(fmod)(x, y); }))
// Sign of the divisor, as in Python; a zero has it too.
struct Modulo {
  template <typename T>
  static ZP_DEVICE T one(T a, T b) {
    const T rest = sizeof(T) == 4 ? ZP_LIBM(fmodf)(a, b) : ZP_LIBM(fmod)(a, b);
    if (rest == 0) return b < 0 ? -T(0) : T(0);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
  template <typename V>
  static ZP_DEVICE V apply(V a, V b) {
    return lanewise(a, b, [](auto x, auto y) { return one(x, y); });
  }
};
ZP_BINARY(Add, a + b)
ZP_BINARY(Sub, a - b)
ZP_BINARY(Mul, a* b)
ZP_BINARY(Div, a / b)
ZP_BINARY(Pow, lanewise(a, b, [](auto x, auto y) { return sizeof(x) == 4 ? ZP_LIBM(powf)(x, y) : ZP_LIBM(pow)(x, y); }))
ZP_BINARY(Maximum, select((a > b) | (a != a), a, b))
ZP_BINARY(Minimum, select((a < b) | (a != a), a, b))
ZP_BINARY(Equal, select(a == b, V(1), V(0)))
ZP_BINARY(Less, select(a < b, V(1), V(0)))
ZP_BINARY(Greater, select(a > b, V(1), V(0)))
ZP_BINARY(LessEqual, select(a <= b, V(1), V(0)))
ZP_BINARY(GreaterEqual, select(a >= b, V(1), V(0)))
ZP_BINARY(LogicalAnd, select((a != V(0)) & (b != V(0)), V(1), V(0)))
ZP_BINARY(LogicalOr, select((a != V(0)) | (b != V(0)), V(1), V(0)))
ZP_TERNARY(Where, select(a != V(0), b, c))

// x Φ(x); Φ by erf, or by tanh of √(2/π) (x + 0.044715 x³).
struct GeluErf {
  template <typename V>
  static ZP_DEVICE V apply(V x) {
    return V(0.5) * x * (V(1) + erf(x * V(0.70710678118654752440)));
  }
};
struct GeluTanh {
  template <typename V>
  static ZP_DEVICE V apply(V x) {
    return x * sigmoid(V(2 * 0.79788456080286535588) * (x + V(0.044715) * x * x * x));  // ½ (1 + tanh u) is the sigmoid of 2u
  }
};

// Gradients: a = dy, b = x, except TanhGrad and SigmoidGrad, where b = y.
ZP_BINARY(ReluGrad, select(b > V(0), a, V(0)))
ZP_BINARY(TanhGrad, a*(V(1) - b * b))
ZP_BINARY(SigmoidGrad, a* b*(V(1) - b))
struct SiluGrad {
  template <typename V>
  static ZP_DEVICE V apply(V dy, V x) {
    const V s = sigmoid(x);
    return dy * (s * (V(1) + x * (V(1) - s)));
  }
};
struct GeluErfGrad {
  template <typename V>
  static ZP_DEVICE V apply(V dy, V x) {
    const V cdf = V(0.5) * (V(1) + erf(x * V(0.70710678118654752440)));
    const V pdf = V(0.39894228040143267794) * exp(V(-0.5) * x * x);
    return dy * (cdf + x * pdf);
  }
};
struct GeluTanhGrad {
  template <typename V>
  static ZP_DEVICE V apply(V dy, V x) {
    const V x2 = x * x;
    const V s = sigmoid(V(2 * 0.79788456080286535588) * (x + V(0.044715) * x * x2));
    const V slope = V(2 * 0.79788456080286535588) * (V(1) + V(3 * 0.044715) * x2);  // of the sigmoid's argument
    return dy * (s + x * s * (V(1) - s) * slope);
  }
};

#undef ZP_LIBRARY
#undef ZP_UNARY
#undef ZP_BINARY
#undef ZP_TERNARY

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
