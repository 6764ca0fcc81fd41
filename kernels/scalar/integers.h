#pragma once
// One functor per elementwise operator on 64-bit integers. Sums and products wrap; division is towards zero, and by zero gives 0.
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

ZP_DEVICE int64_t wrapped(uint64_t bits) { return static_cast<int64_t>(bits); }
ZP_DEVICE uint64_t bits_of(int64_t x) { return static_cast<uint64_t>(x); }

#define ZP_INTEGER(name, expression)                                                                                     \
  struct name {                                                                                                          \
    static ZP_DEVICE int64_t apply([[maybe_unused]] int64_t a, [[maybe_unused]] int64_t b, [[maybe_unused]] int64_t c) { \
      return expression;                                                                                                 \
    }                                                                                                                    \
  };
ZP_INTEGER(IntIdentity, a)
ZP_INTEGER(IntNeg, wrapped(0 - bits_of(a)))
ZP_INTEGER(IntAbs, a < 0 ? wrapped(0 - bits_of(a)) : a)
ZP_INTEGER(IntSign, (a > 0) - (a < 0))
ZP_INTEGER(IntAdd, wrapped(bits_of(a) + bits_of(b)))
ZP_INTEGER(IntSub, wrapped(bits_of(a) - bits_of(b)))
ZP_INTEGER(IntMul, wrapped(bits_of(a) * bits_of(b)))
ZP_INTEGER(IntDiv, b == 0 ? 0 : b == -1 ? wrapped(0 - bits_of(a)) : a / b)
ZP_INTEGER(IntRemainder, b == 0 || b == -1 ? 0 : a % b)
ZP_INTEGER(IntShiftLeft, bits_of(b) < 64 ? wrapped(bits_of(a) << b) : 0)
ZP_INTEGER(IntShiftRight, a >> (bits_of(b) < 63 ? b : 63))
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
  static ZP_DEVICE int64_t apply(int64_t a, int64_t b, int64_t) {
    const int64_t rest = IntRemainder::apply(a, b, 0);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};

// By squaring; a negative exponent gives the truncated reciprocal power.
struct IntPow {
  static ZP_DEVICE int64_t apply(int64_t base, int64_t exponent, int64_t) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1, factor = bits_of(base);
    for (; exponent > 0; exponent >>= 1, factor *= factor) {
      if (exponent & 1) result *= factor;
    }
    return wrapped(result);
  }
};

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
