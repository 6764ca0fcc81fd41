#pragma once
// Operations on sixteen lanes beside arithmetic: selection, bit patterns, folds in a fixed tree.
#include "kernels/cpu/vector.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename T>
ZP_INLINE Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) {
  return Vec<T>{map_registers([](auto k, auto x, auto y) ZP_LAMBDA { return k ? x : y; }, m.s, a.s, b.s)};
}

using IntLanes = Vec<int32_t>;
// The bits of each register as another type of lanes.
template <typename To, typename S>
ZP_INLINE auto reinterpret_registers(const S& s) {
  return map_registers(
      [](auto x) ZP_LAMBDA {
        typedef To R __attribute__((vector_size(sizeof(x))));
        return (R)x;
      },
      s);
}
ZP_INLINE IntLanes to_bits(Vec<float> x) { return IntLanes{reinterpret_registers<int32_t>(x.s)}; }
ZP_INLINE Vec<float> from_bits(IntLanes x) { return Vec<float>{reinterpret_registers<float>(x.s)}; }
ZP_INLINE IntLanes operator<<(IntLanes a, int n) {
  return IntLanes{map_registers([n](auto x) ZP_LAMBDA { return x << n; }, a.s)};
}
ZP_INLINE IntLanes operator>>(IntLanes a, int n) {
  return IntLanes{map_registers([n](auto x) ZP_LAMBDA { return x >> n; }, a.s)};
}
ZP_INLINE IntLanes operator&(IntLanes a, IntLanes b) {
  return IntLanes{map_registers([](auto x, auto y) ZP_LAMBDA { return x & y; }, a.s, b.s)};
}
ZP_INLINE IntLanes operator|(IntLanes a, IntLanes b) {
  return IntLanes{map_registers([](auto x, auto y) ZP_LAMBDA { return x | y; }, a.s, b.s)};
}
ZP_INLINE Vec<float> to_float(IntLanes a) {
  return Vec<float>{map_registers(
      [](auto x) ZP_LAMBDA {
        typedef float F __attribute__((vector_size(sizeof(x))));
        return __builtin_convertvector(x, F);
      },
      a.s)};
}
// Within [low, high]; nan stays nan, as the instructions give the second operand then.
ZP_INLINE Vec<float> clamp(Vec<float> x, Vec<float> low, Vec<float> high) {
  return Vec<float>{map_registers(
      [](auto v, auto l, auto h) ZP_LAMBDA {
#if defined(__AVX512F__)
        return (decltype(v))_mm512_maskz_max_ps(0xffff, (__m512)l, _mm512_maskz_min_ps(0xffff, (__m512)h, (__m512)v));
#elif defined(__AVX__)
        return (decltype(v))_mm256_max_ps((__m256)l, _mm256_min_ps((__m256)h, (__m256)v));
#else
        return (decltype(v))_mm_max_ps((__m128)l, _mm_min_ps((__m128)h, (__m128)v));
#endif
      },
      x.s, low.s, high.s)};
}
#if defined(__AVX512F__)
// p · 2^n for whole n.
ZP_INLINE Vec<float> times_power_of_two(Vec<float> p, Vec<float> n) {
  return Vec<float>{(decltype(p.s))_mm512_maskz_scalef_ps(0xffff, (__m512)p.s, (__m512)n.s)};
}
#endif

template <typename T>
ZP_INLINE Vec<double> to_double(Vec<T> a) {
  T in[kLanes];
  double out[kLanes];
  a.store(in);
  for (int i = 0; i < kLanes; ++i) out[i] = in[i];
  return Vec<double>::load(out);
}

// f on each lane, for functions without a vector form.
template <typename T, typename F>
ZP_INLINE Vec<T> lanewise(Vec<T> a, F f) {
  T x[kLanes];
  a.store(x);
  for (T& e : x) e = f(e);
  return Vec<T>::load(x);
}
template <typename T, typename F>
ZP_INLINE Vec<T> lanewise(Vec<T> a, Vec<T> b, F f) {
  T x[kLanes], y[kLanes];
  a.store(x);
  b.store(y);
  for (int i = 0; i < kLanes; ++i) x[i] = f(x[i], y[i]);
  return Vec<T>::load(x);
}

template <typename T>
ZP_INLINE Vec<T> sqrt(Vec<T> a) {
  return Vec<T>{map_registers(
      [](auto x) ZP_LAMBDA {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4)
          return (decltype(x))_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
        else
          return (decltype(x))_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#elif defined(__AVX__)
        if constexpr (sizeof(T) == 4)
          return (decltype(x))_mm256_sqrt_ps((__m256)x);
        else
          return (decltype(x))_mm256_sqrt_pd((__m256d)x);
#else
        if constexpr (sizeof(T) == 4)
          return (decltype(x))_mm_sqrt_ps((__m128)x);
        else
          return (decltype(x))_mm_sqrt_pd((__m128d)x);
#endif
      },
      a.s)};
}

// ((lane i op lane i+8) op …+4) op …: a fixed tree.
template <typename T, typename F>
ZP_INLINE T fold_lanes(Vec<T> a, F f) {
  T x[kLanes];
  a.store(x);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] = f(x[i], x[i + half]);
  }
  return x[0];
}
template <typename T>
ZP_INLINE T sum_lanes(Vec<T> a) {
  return fold_lanes(a, [](T x, T y) { return x + y; });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
