#pragma once
// One functor per elementwise operator on 64-bit integers, with sign or without (T: int64_t, uint64_t). Sums and products wrap; division is
// towards zero, and by zero gives 0.
#include <type_traits>

#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

ZP_DEVICE uint64_t bits_of(int64_t x) { return static_cast<uint64_t>(x); }
ZP_DEVICE uint64_t bits_of(uint64_t x) { return x; }
// Is it -1? Its quotients do not fit where the dividend is the least number.
template <typename T>
ZP_DEVICE bool minus_one(T x) {
  return std::is_signed_v<T> && x == T(-1);
}

#define ZP_INTEGER(name, expression)                                                             \
  struct name {                                                                                  \
    template <typename T>                                                                        \
    static ZP_DEVICE T apply([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { \
      return static_cast<T>(expression);                                                         \
    }                                                                                            \
  };
ZP_INTEGER(IntIdentity, a)
ZP_INTEGER(IntNeg, 0 - bits_of(a))
ZP_INTEGER(IntAbs, a < T(0) ? 0 - bits_of(a) : bits_of(a))
ZP_INTEGER(IntSign, (a > T(0)) - (a < T(0)))
ZP_INTEGER(IntAdd, bits_of(a) + bits_of(b))
ZP_INTEGER(IntSub, bits_of(a) - bits_of(b))
ZP_INTEGER(IntMul, bits_of(a) * bits_of(b))
ZP_INTEGER(IntDiv, b == 0 ? T(0) : minus_one(b) ? static_cast<T>(0 - bits_of(a)) : a / b)
ZP_INTEGER(IntRemainder, b == 0 || minus_one(b) ? T(0) : a % b)
ZP_INTEGER(IntShiftLeft, bits_of(b) < 64 ? bits_of(a) << b : 0)
ZP_INTEGER(IntShiftRight, bits_of(b) < 64 ? a >> b : a < T(0) ? T(-1) : T(0))
ZP_INTEGER(IntAnd, a& b)
ZP_INTEGER(IntOr, a | b)
ZP_INTEGER(IntXor, a ^ b)
ZP_INTEGER(IntMaximum, a > b ? a : b)
ZP_INTEGER(IntMinimum, a < b ? a : b)
ZP_INTEGER(IntEqual, a == b)
ZP_INTEGER(IntLess, a < b)
ZP_INTEGER(IntGreater, a > b)
ZP_INTEGER(IntLessEqual, a <= b)
ZP_INTEGER(IntGreaterEqual, a >= b)
ZP_INTEGER(IntWhere, a != 0 ? b : c)
#undef ZP_INTEGER

// Sign of the divisor.
struct IntModulo {
  template <typename T>
  static ZP_DEVICE T apply(T a, T b, T) {
    const T rest = IntRemainder::apply(a, b, T(0));
    return rest != 0 && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
};

// By squaring; a negative exponent gives the truncated reciprocal power.
struct IntPow {
  template <typename T>
  static ZP_DEVICE T apply(T base, T exponent, T) {
    if (exponent < T(0)) return base == 1 ? T(1) : minus_one(base) ? (exponent % 2 ? T(-1) : T(1)) : T(0);
    uint64_t result = 1, factor = bits_of(base);
    for (; exponent > 0; exponent >>= 1, factor *= factor) {
      if (exponent & 1) result *= factor;
    }
    return static_cast<T>(result);
  }
};

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
