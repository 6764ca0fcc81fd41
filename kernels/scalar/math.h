#pragma once
// Elementary functions on one number or on lanes of them. float: polynomials of the stated source, within about 2 ulp; double: the
// standard library. V is float, double or a lane type with +, -, *, /, comparisons, select, to_bits and lanewise.
#include <cmath>

#include "kernels/scalar/primitives.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename V>
ZP_DEVICE V absolute(V x) {
  if constexpr (kSingle<V>)
    return from_bits(to_bits(x) & 0x7fffffff);
  else
    return select(x < V(0), -x, x + V(0));  // + 0: -0 becomes +0
}

// p · 2^n for whole n in [-252, 252], in two factors, so that results below 2^-126 come out right. 1.5 · 2^23 + n has n in its low bits.
template <typename V>
ZP_DEVICE V times_power_of_two(V p, V n) {
  const V magic(12582912.0f);
  const auto whole = to_bits(n + magic) - to_bits(magic);
  const auto half = whole >> 1;
  return p * from_bits((half + 127) << 23) * from_bits((whole - half + 127) << 23);
}

// Cephes expf: x = n ln 2 + r, polynomial of degree 5 in r.
template <typename V>
ZP_DEVICE V exp(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return ZP_LIBM(exp)(e); });
  } else {
    const V magic(12582912.0f);  // adding it rounds to a whole number
    const V y = clamp(x, V(-104.0f), V(89.0f));
    const V n = (y * V(1.44269504088896341f) + magic) - magic;
    const V r = (y - n * V(0.693359375f)) - n * V(-2.12194440e-4f);
    V p = V(1.9875691500e-4f);
    p = p * r + V(1.3981999507e-3f);
    p = p * r + V(8.3334519073e-3f);
    p = p * r + V(4.1665795894e-2f);
    p = p * r + V(1.6666665459e-1f);
    p = p * r + V(5.0000001201e-1f);
    p = p * (r * r) + r + V(1.0f);
    return times_power_of_two(p, n);
  }
}

// Cephes logf: x = m 2^e with m in [√½, √2), polynomial of degree 8 in m - 1.
template <typename V>
ZP_DEVICE V log(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return ZP_LIBM(log)(e); });
  } else {
    const V infinity(__builtin_inff());
    const auto tiny = x < V(1.17549435e-38f);
    const V scaled = select(tiny, x * V(8388608.0f), x);  // 2^23: denormals
    const auto bits = to_bits(scaled);
    V m = from_bits((bits & 0x007fffff) | 0x3f000000);  // [½, 1)
    V e = to_float((bits >> 23) - 126) - select(tiny, V(23.0f), V(0.0f));
    const auto low = m < V(0.707106781186547524f);
    e = select(low, e - V(1.0f), e);
    m = select(low, m + m, m) - V(1.0f);
    const V z = m * m;
    V p = V(7.0376836292e-2f);
    p = p * m + V(-1.1514610310e-1f);
    p = p * m + V(1.1676998740e-1f);
    p = p * m + V(-1.2420140846e-1f);
    p = p * m + V(1.4249322787e-1f);
    p = p * m + V(-1.6668057665e-1f);
    p = p * m + V(2.0000714765e-1f);
    p = p * m + V(-2.4999993993e-1f);
    p = p * m + V(3.3333331174e-1f);
    V y = p * m * z + e * V(-2.12194440e-4f) - V(0.5f) * z;
    y = (m + y) + e * V(0.693359375f);
    y = select(x == V(0.0f), -infinity, y);
    y = select(x < V(0.0f), V(__builtin_nanf("")), y);
    return select(x < infinity, y, x);  // +inf and nan
  }
}

// Cephes tanhf: an odd polynomial below 0.625, 1 - 2 / (e^2x + 1) above.
template <typename V>
ZP_DEVICE V tanh(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return ZP_LIBM(tanh)(e); });
  } else {
    const V a = absolute(x);
    const V z = x * x;
    V p = V(-5.70498872745e-3f);
    p = p * z + V(2.06390887954e-2f);
    p = p * z + V(-5.37397155531e-2f);
    p = p * z + V(1.33314422036e-1f);
    p = p * z + V(-3.33332819422e-1f);
    const V small = p * z * x + x;
    const V large = V(1.0f) - V(2.0f) / (exp(a + a) + V(1.0f));
    return select(a < V(0.625f), small, select(x < V(0.0f), -large, large));
  }
}

template <typename V>
ZP_DEVICE V sigmoid(V x) {
  const V e = exp(-absolute(x));  // never overflows
  const V s = V(1) / (V(1) + e);
  return select(x < V(0), e * s, s);
}

// Minimax polynomials of N. Juffa's erff (0.99 ulp with fused multiply-add): x + x P(x²) below 0.9277, 1 - exp(R(|x|)) above.
template <typename V>
ZP_DEVICE V erf(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return ZP_LIBM(erf)(e); });
  } else {
    const V t = absolute(x);
    const V z = x * x;
    V r = (V(-1.72853470e-5f) * t + V(3.83197126e-4f)) * z + (V(-3.88396438e-3f) * t + V(2.42546219e-2f));
    r = r * t + V(-1.06777877e-1f);
    r = r * t + V(-6.34846687e-1f);
    r = r * t + V(-1.28717512e-1f);
    r = r * t - t;
    const V large = V(1.0f) - exp(r);
    V p = V(-5.96761703e-4f);
    p = p * z + V(4.99119423e-3f);
    p = p * z + V(-2.67681349e-2f);
    p = p * z + V(1.12819925e-1f);
    p = p * z + V(-3.76125336e-1f);
    p = p * z + V(1.28379166e-1f);
    const V small = p * x + x;
    return select(t > V(0.927734375f), select(x < V(0.0f), -large, large), small);
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
