#pragma once
// Windows over one plane of points, tap by tap along rows: y[o] and x[o·stride − before + t·dilation] for all results o that have both.
#include "graph/ops/conv_shape.h"
#include "kernels/cpu/rows.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// A row of results and the elements that one tap pairs them with: x[i·stride] for y[i], i < count.
struct TapRow {
  int64_t x, y, count, stride;
};

// fn(tap, TapRow) for each tap, in order, and each row of results that it reaches.
template <typename Fn>
inline void for_tap_rows(const Windows& w, const Fn& fn) {
  const WindowAxis &a = w.axis[0], &b = w.axis[1], &c = w.axis[2];
  int64_t tap = 0;
  for (int64_t t = 0; t < a.kernel; ++t)
    for (int64_t u = 0; u < b.kernel; ++u)
      for (int64_t v = 0; v < c.kernel; ++v, ++tap) {
        const int64_t first = c.first_result(v), last = c.last_result(v);
        if (first >= last) continue;
        for (int64_t i = a.first_result(t); i < a.last_result(t); ++i)
          for (int64_t j = b.first_result(u); j < b.last_result(u); ++j) {
            const int64_t row = (i * a.stride - a.before + t * a.dilation) * b.in + j * b.stride - b.before + u * b.dilation;
            fn(tap,
               TapRow{row * c.in + first * c.stride - c.before + v * c.dilation, (i * b.out + j) * c.out + first, last - first, c.stride});
          }
      }
}

// y += factor · x
template <typename T>
inline void add_tap(const TapRow& row, T factor, const T* x, T* y) {
  x += row.x;
  y += row.y;
  if (row.stride == 1) {
    const Vec<T> f(factor);
    for_lanes<T>(row.count, [=](auto at) ZP_LAMBDA { at.store(y, at.load(y) + f * at.load(x)); });
  } else {
    for (int64_t i = 0; i < row.count; ++i) y[i] += factor * x[i * row.stride];
  }
}

// x += factor · y
template <typename T>
inline void add_tap_back(const TapRow& row, T factor, const T* y, T* x) {
  x += row.x;
  y += row.y;
  if (row.stride == 1) {
    const Vec<T> f(factor);
    for_lanes<T>(row.count, [=](auto at) ZP_LAMBDA { at.store(x, at.load(x) + f * at.load(y)); });
  } else {
    for (int64_t i = 0; i < row.count; ++i) x[i * row.stride] += factor * y[i];
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
