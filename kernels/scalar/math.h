#pragma once
// Elementary functions on one number or on lanes of them. float: polynomials of the stated source, within about 2 ulp; double: the
// standard library. V is float, double or a lane type with +, -, *, /, comparisons, select, to_bits and lanewise.
#include <cmath>
#include <cstdint>
#include <cstring>

#ifndef ZP_DEVICE
#define ZP_DEVICE inline __attribute__((always_inline))
#endif

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename V>
struct ScalarOf { using type = typename V::Scalar; };
template <>
struct ScalarOf<float> { using type = float; };
template <>
struct ScalarOf<double> { using type = double; };
template <>
struct ScalarOf<int64_t> { using type = int64_t; };
template <typename V>
inline constexpr bool kSingle = sizeof(typename ScalarOf<V>::type) == 4;

// The lane primitives for plain numbers.
ZP_DEVICE float select(bool m, float a, float b) { return m ? a : b; }
ZP_DEVICE double select(bool m, double a, double b) { return m ? a : b; }
ZP_DEVICE int64_t select(bool m, int64_t a, int64_t b) { return m ? a : b; }
ZP_DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
ZP_DEVICE double sqrt(double x) { return __builtin_sqrt(x); }
ZP_DEVICE float to_float(int32_t x) { return static_cast<float>(x); }
ZP_DEVICE int32_t to_bits(float x) {
  int32_t r;
  std::memcpy(&r, &x, sizeof(r));
  return r;
}
ZP_DEVICE float from_bits(int32_t x) {
  float r;
  std::memcpy(&r, &x, sizeof(r));
  return r;
}
template <typename F>
ZP_DEVICE float lanewise(float a, F f) { return f(a); }
template <typename F>
ZP_DEVICE double lanewise(double a, F f) { return f(a); }
template <typename F>
ZP_DEVICE float lanewise(float a, float b, F f) { return f(a, b); }
template <typename F>
ZP_DEVICE double lanewise(double a, double b, F f) { return f(a, b); }

template <typename V>
ZP_DEVICE V absolute(V x) {
  if constexpr (kSingle<V>) return from_bits(to_bits(x) & 0x7fffffff);
  else return select(x < V(0), -x, x + V(0));  // + 0: -0 becomes +0
}

// Cephes expf: x = n ln 2 + r, polynomial of degree 5 in r; 2^n in two factors, so that results below 2^-126 come out right.
template <typename V>
ZP_DEVICE V exp(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return __builtin_exp(e); });
  } else {
    const V magic(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer in the low bits
    const V y = select(x > V(89.0f), V(89.0f), select(x < V(-104.0f), V(-104.0f), x));
    const V shifted = y * V(1.44269504088896341f) + magic;
    const V n = shifted - magic;
    const V r = (y - n * V(0.693359375f)) - n * V(-2.12194440e-4f);
    V p = V(1.9875691500e-4f);
    p = p * r + V(1.3981999507e-3f);
    p = p * r + V(8.3334519073e-3f);
    p = p * r + V(4.1665795894e-2f);
    p = p * r + V(1.6666665459e-1f);
    p = p * r + V(5.0000001201e-1f);
    p = p * (r * r) + r + V(1.0f);
    const auto whole = to_bits(shifted) - to_bits(magic);
    const auto half = whole >> 1;
    return p * from_bits((half + 127) << 23) * from_bits((whole - half + 127) << 23);
  }
}

// Cephes logf: x = m 2^e with m in [√½, √2), polynomial of degree 8 in m - 1.
template <typename V>
ZP_DEVICE V log(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return __builtin_log(e); });
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
    return lanewise(x, [](double e) { return __builtin_tanh(e); });
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

// Rational minimax approximation x P(x²) / Q(x²) on [-4, 4], as Eigen's generic erf for float; erf is 1 in float beyond.
template <typename V>
ZP_DEVICE V erf(V x) {
  if constexpr (!kSingle<V>) {
    return lanewise(x, [](double e) { return __builtin_erf(e); });
  } else {
    const V c = select(x > V(4.0f), V(4.0f), select(x < V(-4.0f), V(-4.0f), x));
    const V z = c * c;
    V p = V(-2.72614225801306e-10f);
    p = p * z + V(2.77068142495902e-08f);
    p = p * z + V(-2.10102402082508e-06f);
    p = p * z + V(-5.69250639462346e-05f);
    p = p * z + V(-7.34990630326855e-04f);
    p = p * z + V(-2.95459980854025e-03f);
    p = p * z + V(-1.60960333262415e-02f);
    V q = V(-1.45660718464996e-05f);
    q = q * z + V(-2.13374055278905e-04f);
    q = q * z + V(-1.68282697438203e-03f);
    q = q * z + V(-7.37332916720468e-03f);
    q = q * z + V(-1.42647390514189e-02f);
    return c * p / q;
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
