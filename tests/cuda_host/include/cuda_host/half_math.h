// The half and bfloat16 functions that the toolkit declares for nvcc only.
// Everything else (conversions, operators, comparisons, __hadd, __hmax, ...)
// comes from the host paths of cuda_fp16.h and cuda_bf16.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>

namespace cuda_host::simt {
inline float widen(__half x) { return __half2float(x); }
inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
T narrow(double x);
template <>
inline __half narrow(double x) {
  return __double2half(x);
}
template <>
inline __nv_bfloat16 narrow(double x) {
  return __double2bfloat16(x);
}
}  // namespace cuda_host::simt

#define CUDA_HOST_UNARY(T, T2, name, expression)   \
  inline T h##name(T value) {                      \
    const float x = cuda_host::simt::widen(value); \
    return cuda_host::simt::narrow<T>(expression); \
  }                                                \
  inline T2 h2##name(T2 value) { return T2(h##name(value.x), h##name(value.y)); }

// The fused form rounds once: a product of two halves is exact in double.
#define CUDA_HOST_FUSED(T, T2)                                                                         \
  inline T __hfma(T a, T b, T c) {                                                                     \
    using cuda_host::simt::widen;                                                                      \
    return cuda_host::simt::narrow<T>(std::fma(double{widen(a)}, double{widen(b)}, double{widen(c)})); \
  }                                                                                                    \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }

#define CUDA_HOST_HALF_TYPE(T, T2)                          \
  CUDA_HOST_FUSED(T, T2)                                    \
  CUDA_HOST_UNARY(T, T2, exp, std::exp(x))                  \
  CUDA_HOST_UNARY(T, T2, exp2, std::exp2(x))                \
  CUDA_HOST_UNARY(T, T2, exp10, std::pow(10.0, double{x}))  \
  CUDA_HOST_UNARY(T, T2, log, std::log(x))                  \
  CUDA_HOST_UNARY(T, T2, log2, std::log2(x))                \
  CUDA_HOST_UNARY(T, T2, log10, std::log10(x))              \
  CUDA_HOST_UNARY(T, T2, sqrt, std::sqrt(x))                \
  CUDA_HOST_UNARY(T, T2, rsqrt, 1.0 / std::sqrt(double{x})) \
  CUDA_HOST_UNARY(T, T2, rcp, 1.0 / double{x})              \
  CUDA_HOST_UNARY(T, T2, sin, std::sin(x))                  \
  CUDA_HOST_UNARY(T, T2, cos, std::cos(x))                  \
  CUDA_HOST_UNARY(T, T2, tanh, std::tanh(x))                \
  CUDA_HOST_UNARY(T, T2, floor, std::floor(x))              \
  CUDA_HOST_UNARY(T, T2, ceil, std::ceil(x))                \
  CUDA_HOST_UNARY(T, T2, trunc, std::trunc(x))              \
  CUDA_HOST_UNARY(T, T2, rint, std::nearbyint(x))

CUDA_HOST_HALF_TYPE(__half, __half2)
CUDA_HOST_HALF_TYPE(__nv_bfloat16, __nv_bfloat162)

#undef CUDA_HOST_HALF_TYPE
#undef CUDA_HOST_FUSED
#undef CUDA_HOST_UNARY

inline int __half2int_rn(__half x) { return static_cast<int>(std::nearbyint(__half2float(x))); }
inline int __bfloat162int_rn(__nv_bfloat16 x) { return static_cast<int>(std::nearbyint(__bfloat162float(x))); }
