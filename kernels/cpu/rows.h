#pragma once
// Loops over contiguous elements, sixteen at a time, with a tail; sums and maxima in a fixed order.
#include "kernels/cpu/lanes.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// One position of a loop over lanes: all sixteen, or the first `n`; lanes past the end read as `fill` and are not written.
template <typename T>
struct WholeLanes {
  int64_t i;
  ZP_INLINE Vec<T> load(const T* p) const { return Vec<T>::load(p + i); }
  ZP_INLINE void store(T* p, Vec<T> v) const { v.store(p + i); }
  ZP_INLINE Vec<T> keep(Vec<T> v, T) const { return v; }
};
template <typename T>
struct PartLanes {
  int64_t i, n;
  ZP_INLINE Vec<T> load(const T* p) const { return Vec<T>::load_part(p + i, n); }
  ZP_INLINE void store(T* p, Vec<T> v) const { v.store_part(p + i, n); }
  ZP_INLINE Vec<T> keep(Vec<T> v, T fill) const {
    T x[kLanes];
    v.store(x);
    for (int64_t k = n; k < kLanes; ++k) x[k] = fill;
    return Vec<T>::load(x);
  }
};

template <typename T, typename F>
ZP_INLINE void for_lanes(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(WholeLanes<T>{i});
  if (i < n) f(PartLanes<T>{i, n - i});
}

// Sum over n elements of what term(position) gives; four chains of lanes, so that additions overlap.
template <typename T, typename F>
ZP_INLINE T sum_over(int64_t n, F term) {
  Vec<T> a(T(0)), b(T(0)), c(T(0)), d(T(0));
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a += term(WholeLanes<T>{i});
    b += term(WholeLanes<T>{i + kLanes});
    c += term(WholeLanes<T>{i + 2 * kLanes});
    d += term(WholeLanes<T>{i + 3 * kLanes});
  }
  for (; i + kLanes <= n; i += kLanes) a += term(WholeLanes<T>{i});
  if (i < n) b += PartLanes<T>{i, n - i}.keep(term(PartLanes<T>{i, n - i}), T(0));
  return sum_lanes((a + b) + (c + d));
}

// The largest of n elements; a nan may or may not be noticed.
template <typename T>
ZP_INLINE T max_over(const T* x, int64_t n) {
  const T lowest = static_cast<T>(-__builtin_inf());
  Vec<T> best[4] = {lowest, lowest, lowest, lowest};
  const auto take = [&](int chain, Vec<T> v) ZP_LAMBDA { best[chain] = select(v > best[chain], v, best[chain]); };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int chain = 0; chain < 4; ++chain) take(chain, Vec<T>::load(x + i + chain * kLanes));
  }
  for_lanes<T>(n - i, [&](auto at) ZP_LAMBDA { take(0, at.keep(at.load(x + i), lowest)); });
  for (int chain = 1; chain < 4; ++chain) take(0, best[chain]);
  return fold_lanes(best[0], [](T p, T q) { return p > q ? p : q; });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
