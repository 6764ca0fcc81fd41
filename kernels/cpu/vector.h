#pragma once
// Sixteen lanes of a type, whatever the registers of the instruction set: reductions have the same order everywhere.
#include <type_traits>

#include "kernels/cpu/registers.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename T>
using IntOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Lanes that are all ones or all zeros.
template <typename T>
struct Mask {
  using S = typename StorageOf<IntOf<T>, kLanes>::type;
  S s;
  friend ZP_INLINE Mask operator&(Mask a, Mask b) {
    return {map_registers([](auto x, auto y) ZP_LAMBDA { return x & y; }, a.s, b.s)};
  }
  friend ZP_INLINE Mask operator|(Mask a, Mask b) {
    return {map_registers([](auto x, auto y) ZP_LAMBDA { return x | y; }, a.s, b.s)};
  }
};

#define ZP_VEC_BINARY(sign)                                                                 \
  friend ZP_INLINE Vec operator sign(Vec a, Vec b) {                                        \
    return Vec{map_registers([](auto x, auto y) ZP_LAMBDA { return x sign y; }, a.s, b.s)}; \
  }

// The cast is for clang, whose comparisons of doubles give long long.
#define ZP_VEC_COMPARE(sign)                                          \
  friend ZP_INLINE Mask<T> operator sign(Vec a, Vec b) {              \
    return {map_registers(                                            \
        [](auto x, auto y) ZP_LAMBDA {                                \
          typedef IntOf<T> I __attribute__((vector_size(sizeof(x)))); \
          return (I)(x sign y);                                       \
        },                                                            \
        a.s, b.s)};                                                   \
  }

template <typename T>
struct Vec {
  using S = typename StorageOf<T, kLanes>::type;
  using Scalar = T;
  S s;
  Vec() = default;
  ZP_INLINE explicit Vec(S storage) : s(storage) {}
  ZP_INLINE Vec(T x) : s(splat_registers<S>(x)) {}  // NOLINT: constants mix with lanes
  static ZP_INLINE Vec load(const T* p) { return Vec{load_registers<S>(reinterpret_cast<const char*>(p))}; }
  ZP_INLINE void store(T* p) const { store_registers(reinterpret_cast<char*>(p), s); }
  static ZP_INLINE Vec load_part(const T* p, int64_t n) {
    T buffer[kLanes] = {};
    for (int64_t i = 0; i < n; ++i) buffer[i] = p[i];
    return load(buffer);
  }
  ZP_INLINE void store_part(T* p, int64_t n) const {
    T buffer[kLanes];
    store(buffer);
    for (int64_t i = 0; i < n; ++i) p[i] = buffer[i];
  }
  friend ZP_INLINE Vec operator-(Vec a) {
    return Vec{map_registers([](auto x) ZP_LAMBDA { return -x; }, a.s)};
  }
  ZP_VEC_BINARY(+)
  ZP_VEC_BINARY(-)
  ZP_VEC_BINARY(*)
  ZP_VEC_BINARY(/)
  ZP_VEC_COMPARE(<)
  ZP_VEC_COMPARE(>)
  ZP_VEC_COMPARE(<=)
  ZP_VEC_COMPARE(>=)
  ZP_VEC_COMPARE(==)
  ZP_VEC_COMPARE(!=)
  ZP_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }
};
#undef ZP_VEC_BINARY
#undef ZP_VEC_COMPARE

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
