// Device intrinsics that glibc does not have. Fast variants use the exact
// function: a kernel must not depend on the error of __expf.
#pragma once

#include <vector_types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define CUDA_HOST_MIN_MAX(T)                       \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
CUDA_HOST_MIN_MAX(int)
CUDA_HOST_MIN_MAX(unsigned)
CUDA_HOST_MIN_MAX(long)
CUDA_HOST_MIN_MAX(unsigned long)
CUDA_HOST_MIN_MAX(long long)
CUDA_HOST_MIN_MAX(unsigned long long)
#undef CUDA_HOST_MIN_MAX
// Like fmin and fmax: a NaN loses.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rcbrtf(float x) { return 1.0F / std::cbrt(x); }
inline float normcdff(float x) { return 0.5F * std::erfc(-x * 0.70710678F); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752); }
inline float sinpif(float x) { return static_cast<float>(std::sin(3.14159265358979324 * x)); }
inline float cospif(float x) { return static_cast<float>(std::cos(3.14159265358979324 * x)); }

inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0F, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* s, float* c) {
  *s = std::sin(x);
  *c = std::cos(x);
}
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
// fmin and fmax first, as the hardware does: NaN becomes 0.
inline float __saturatef(float x) { return std::fmin(std::fmax(x, 0.0F), 1.0F); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(double{x})); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

namespace cuda_host::simt {
// Device conversions saturate and turn NaN into 0; the C++ cast would be undefined.
template <class To, class From>
To saturating_cast(From x) {
  if (std::isnan(x)) return 0;
  constexpr auto low = std::numeric_limits<To>::min();
  constexpr auto high = std::numeric_limits<To>::max();
  if (x <= static_cast<From>(low)) return low;
  if (x >= static_cast<From>(high)) return high;
  return static_cast<To>(x);
}
}  // namespace cuda_host::simt

inline int __float2int_rn(float x) { return cuda_host::simt::saturating_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return cuda_host::simt::saturating_cast<int>(std::trunc(x)); }
inline int __float2int_ru(float x) { return cuda_host::simt::saturating_cast<int>(std::ceil(x)); }
inline int __float2int_rd(float x) { return cuda_host::simt::saturating_cast<int>(std::floor(x)); }
inline unsigned __float2uint_rn(float x) { return cuda_host::simt::saturating_cast<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return cuda_host::simt::saturating_cast<unsigned>(std::trunc(x)); }
inline int __double2int_rn(double x) { return cuda_host::simt::saturating_cast<int>(std::nearbyint(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
