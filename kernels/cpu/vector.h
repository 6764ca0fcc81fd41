#pragma once
// Sixteen lanes of a type, whatever the registers of the instruction set: reductions have the same order everywhere.
#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#define ZP_INLINE inline __attribute__((always_inline))
#define ZP_LAMBDA __attribute__((always_inline))

namespace zeroplan::ZP_KERNEL_NAMESPACE {

inline constexpr int kLanes = 16;
#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif

template <typename S>
struct Pair {
  S lo, hi;
};
template <typename S>
inline constexpr bool kIsPair = false;
template <typename S>
inline constexpr bool kIsPair<Pair<S>> = true;

template <typename T, int N, bool fits = (N * sizeof(T) <= kRegisterBytes)>
struct StorageOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <typename T, int N>
struct StorageOf<T, N, false> {
  using type = Pair<typename StorageOf<T, N / 2>::type>;
};

// f on every register of the operands.
template <typename F, typename S, typename... R>
ZP_INLINE auto map_registers(F f, const S& first, const R&... rest) {
  if constexpr (kIsPair<S>) {
    auto lo = map_registers(f, first.lo, rest.lo...);
    auto hi = map_registers(f, first.hi, rest.hi...);
    return Pair<decltype(lo)>{lo, hi};
  } else {
    return f(first, rest...);
  }
}

template <typename S, typename T>
ZP_INLINE S splat_registers(T x) {
  if constexpr (kIsPair<S>) {
    const auto half = splat_registers<decltype(S::lo)>(x);
    return S{half, half};
  } else {
    return x - S{};  // becomes a broadcast; x - 0 is x, also for -0
  }
}

// Register by register: a copy of the whole storage would keep it in memory.
template <typename S>
ZP_INLINE S load_registers(const char* p) {
  S s;
  if constexpr (kIsPair<S>) s = S{load_registers<decltype(S::lo)>(p), load_registers<decltype(S::hi)>(p + sizeof(S::lo))};
  else std::memcpy(&s, p, sizeof(S));
  return s;
}
template <typename S>
ZP_INLINE void store_registers(char* p, const S& s) {
  if constexpr (kIsPair<S>) {
    store_registers(p, s.lo);
    store_registers(p + sizeof(s.lo), s.hi);
  } else {
    std::memcpy(p, &s, sizeof(S));
  }
}

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
#define ZP_VEC_COMPARE(sign)                                                         \
  friend ZP_INLINE Mask<T> operator sign(Vec a, Vec b) {                             \
    return {map_registers(                                                           \
        [](auto x, auto y) ZP_LAMBDA {                                               \
          typedef IntOf<T> I __attribute__((vector_size(sizeof(x)))); \
          return (I)(x sign y);                                                      \
        },                                                                           \
        a.s, b.s)};                                                                  \
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
