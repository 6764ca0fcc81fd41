#pragma once
// Storage of sixteen lanes: one register of the instruction set, or pairs of halves down to that.
#include <immintrin.h>

#include <cstdint>
#include <cstring>

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
inline constexpr bool kIsPair = requires(S s) {
  s.lo;
};

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
    // Not one half twice: that copy would lie in memory.
    return S{splat_registers<decltype(S::lo)>(x), splat_registers<decltype(S::hi)>(x)};
  } else {
    return x - S{};  // becomes a broadcast; x - 0 is x, also for -0
  }
}

// One by one: a copy of the whole storage would keep it in memory.
template <typename S>
ZP_INLINE S load_registers(const char* p) {
  if constexpr (kIsPair<S>) {
    return S{load_registers<decltype(S::lo)>(p), load_registers<decltype(S::hi)>(p + sizeof(S::lo))};
  } else {
    S s;
    std::memcpy(&s, p, sizeof(S));
    return s;
  }
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

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
