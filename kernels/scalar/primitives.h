#pragma once
// What functors need beside arithmetic and comparisons, for one plain number; lane types bring the same functions of their own.
#include <cstdint>
#include <cstring>

// ZP_DEVICE marks a function of every device; ZP_LIBM(expf) is the C library's function there.
#ifdef __CUDACC__
#define ZP_DEVICE __host__ __device__ __forceinline__
#define ZP_LIBM(name) ::name
#else
#define ZP_DEVICE inline __attribute__((always_inline))
#define ZP_LIBM(name) __builtin_##name
#endif

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename V>
struct ScalarOf {
  using type = typename V::Scalar;
};
template <>
struct ScalarOf<float> {
  using type = float;
};
template <>
struct ScalarOf<double> {
  using type = double;
};
template <>
struct ScalarOf<int64_t> {
  using type = int64_t;
};
template <typename V>
inline constexpr bool kSingle = sizeof(typename ScalarOf<V>::type) == 4;

ZP_DEVICE float select(bool m, float a, float b) { return m ? a : b; }
ZP_DEVICE double select(bool m, double a, double b) { return m ? a : b; }
ZP_DEVICE int64_t select(bool m, int64_t a, int64_t b) { return m ? a : b; }
ZP_DEVICE float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
ZP_DEVICE float sqrt(float x) { return ZP_LIBM(sqrtf)(x); }
ZP_DEVICE double sqrt(double x) { return ZP_LIBM(sqrt)(x); }
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
ZP_DEVICE float lanewise(float a, F f) {
  return f(a);
}
template <typename F>
ZP_DEVICE double lanewise(double a, F f) {
  return f(a);
}
template <typename F>
ZP_DEVICE float lanewise(float a, float b, F f) {
  return f(a, b);
}
template <typename F>
ZP_DEVICE double lanewise(double a, double b, F f) {
  return f(a, b);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
