#pragma once
// The exact accumulator of squared norms: pieces of 32 bits in integers, as in reproducible summation (Demmel and Nguyen; Kulisch's long
// accumulator). Layout in runtime/plan/report.h.
#include "kernels/scalar/primitives.h"
#include "runtime/plan/report.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

constexpr int kMantissaBits = 52, kExponentBias = 1075;  // a double is mantissa · 2^(exponent - 1075)

ZP_DEVICE uint64_t double_bits(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// limbs += value >= 0, exactly, by add(limb, piece). A value that is not finite goes into the highest limb, which no finite sum reaches.
template <typename Add>
ZP_DEVICE void add_exactly(double value, const Add& add) {
  const uint64_t bits = double_bits(value), fraction = bits & ((uint64_t{1} << kMantissaBits) - 1);
  const int exponent = static_cast<int>(bits >> kMantissaBits & 0x7ff);
  if (exponent == 0x7ff) return add(kNormLimbs - 1, 1);
  if (bits == 0) return;
  const uint64_t mantissa = exponent == 0 ? fraction : fraction | uint64_t{1} << kMantissaBits;
  const int position = (exponent == 0 ? 1 : exponent) - kExponentBias - kNormLowestExponent, limb = position / 32, shift = position % 32;
  add(limb, static_cast<int64_t>(mantissa << shift & 0xffffffff));
  add(limb + 1, static_cast<int64_t>(mantissa >> (32 - shift) & 0xffffffff));
  if (shift > 11) add(limb + 2, static_cast<int64_t>(mantissa >> (64 - shift)));
}

// mantissa · 2^exponent for a mantissa of at least 64 bits, rounded to nearest, ties to even; `below`: there is more under its last bit.
ZP_DEVICE double rounded(uint64_t high, uint64_t low, bool below, int exponent) {
  int shift = 0;
  while (high >> 63 == 0) {  // the highest bit of the pair to the top
    high = high << 1 | low >> 63;
    low <<= 1;
    ++shift;
  }
  constexpr int kCut = 63 - kMantissaBits;
  const uint64_t kept = high >> kCut, rest = high & ((uint64_t{1} << kCut) - 1), half = uint64_t{1} << (kCut - 1);
  const bool more = low != 0 || below, up = rest > half || (rest == half && (more || (kept & 1) != 0));
  return ZP_LIBM(ldexp)(static_cast<double>(kept + (up ? 1 : 0)), exponent + 64 + kCut - shift);
}

// The sum of the limbs, rounded once; the carries are propagated.
ZP_DEVICE double limbs_value(int64_t* limbs) {
  int64_t carry = 0;
  int top = -1;
  for (int i = 0; i < kNormLimbs; ++i) {
    const int64_t sum = limbs[i] + carry;  // every limb is a sum of pieces below 2^32, at most 2^31 of them
    limbs[i] = sum & 0xffffffff;
    carry = sum >> 32;
    if (limbs[i] != 0) top = i;
  }
  if (top < 0) return 0;
  const auto limb = [&](int i) { return i >= 0 ? static_cast<uint64_t>(limbs[i]) : 0; };
  bool below = false;
  for (int i = 0; i <= top - 4; ++i) below = below || limbs[i] != 0;
  return rounded(limb(top) << 32 | limb(top - 1), limb(top - 2) << 32 | limb(top - 3), below, 32 * (top - 3) + kNormLowestExponent);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
