#pragma once
// Convolutions with one input channel per group, plane by plane.
#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/plane_taps.h"
#include "kernels/cpu/plane_windows.h"
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// x [N, groups, …], w [groups·M, 1, taps] → y [N, groups·M, …]
template <typename T>
void conv_by_planes(const KernelArgs& args, const ConvShape& s) {
  const T *x = static_cast<const T*>(args.inputs[0].data), *w = static_cast<const T*>(args.inputs[1].data);
  T* y = static_cast<T*>(args.outputs[0].data);
  const int64_t in = s.windows.in_points(), out = s.windows.out_points();
  const PlaneTaps<T> taps(args, s.windows, 0);
  parallel_for_workers(args.threads, s.batch * s.groups, [&](int thread, int64_t plane) {
    taps.fill(x + plane * in, taps.plane(thread));
    for (int64_t m = 0; m < s.out_channels; ++m) {
      const T* weights = w + (plane % s.groups * s.out_channels + m) * taps.taps();
      taps.products(taps.plane(thread), weights, y + (plane * s.out_channels + m) * out, false);
    }
  });
}

// dy, w → dx, tap by tap.
template <typename T>
void conv_grad_input_strided(const KernelArgs& args, const ConvShape& s) {
  const T *dy = static_cast<const T*>(args.inputs[0].data), *w = static_cast<const T*>(args.inputs[1].data);
  T* dx = static_cast<T*>(args.outputs[0].data);
  const int64_t in = s.windows.in_points(), out = s.windows.out_points(), taps = s.windows.taps();
  parallel_for(args.threads, s.batch * s.groups, [&](int64_t plane) {
    T* to = dx + plane * in;
    std::fill_n(to, in, T(0));
    for (int64_t m = 0; m < s.out_channels; ++m) {
      const int64_t channel = plane % s.groups * s.out_channels + m;
      const T* from = dy + (plane * s.out_channels + m) * out;
      for_tap_rows(s.windows, [&](int64_t tap, const TapRow& row) { add_tap_back(row, w[channel * taps + tap], from, to); });
    }
  });
}

// dy, w → dx
template <typename T>
void conv_grad_input_by_planes(const KernelArgs& args, const ConvShape& s) {
  if (!s.unit_strides()) return conv_grad_input_strided<T>(args, s);
  const T *dy = static_cast<const T*>(args.inputs[0].data), *w = static_cast<const T*>(args.inputs[1].data);
  T* dx = static_cast<T*>(args.outputs[0].data);
  const int64_t in = s.windows.in_points(), out = s.windows.out_points();
  const Windows windows = reversed(s.windows);
  const PlaneTaps<T> taps(args, windows, 0);
  std::reverse(taps.offsets(), taps.offsets() + taps.taps());
  parallel_for_workers(args.threads, s.batch * s.groups, [&](int thread, int64_t plane) {
    for (int64_t m = 0; m < s.out_channels; ++m) {
      const T* weights = w + (plane % s.groups * s.out_channels + m) * taps.taps();
      taps.fill(dy + (plane * s.out_channels + m) * out, taps.plane(thread));
      taps.products(taps.plane(thread), weights, dx + plane * in, m > 0);
    }
  });
}

// sums[k] += Σ over a row of results of dy · what tap k reads, lane by lane.
template <typename T, int K>
ZP_INLINE void add_row_products(const T* from, const int64_t* offsets, const T* dy, int64_t count, Vec<T>* sums) {
  for_lanes<T>(count, [=](auto at) ZP_LAMBDA {
    const Vec<T> gradient = at.load(dy);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) sums[k] += gradient * Vec<T>::load(from + offsets[k] + at.i);
  });
}

// The sums of K taps over a plane, which lie in memory from `sums` on.
template <typename T, int K>
void add_plane_products(const PlaneTaps<T>& taps, const T* plane, int64_t tap, const T* dy, int64_t columns, T* sums) {
  Vec<T> held[K];
  for (int k = 0; k < K; ++k) held[k] = Vec<T>::load(sums + k * kLanes);
  taps.for_rows(plane, [&](const T* from, int64_t result)
                           ZP_LAMBDA { add_row_products<T, K>(from, taps.offsets() + tap, dy + result, columns, held); });
  for (int k = 0; k < K; ++k) held[k].store(sums + k * kLanes);
}

// x, dy → dw
template <typename T>
void conv_grad_weight_by_planes(const KernelArgs& args, const ConvShape& s) {
  const T *x = static_cast<const T*>(args.inputs[0].data), *dy = static_cast<const T*>(args.inputs[1].data);
  T* dw = static_cast<T*>(args.outputs[0].data);
  const int64_t in = s.windows.in_points(), out = s.windows.out_points(), columns = s.windows.axis[2].out;
  const PlaneTaps<T> taps(args, s.windows, s.out_channels * s.windows.taps());
  const int64_t each = taps.taps(), all = s.out_channels * each;
  parallel_for_workers(args.threads, s.groups, [&](int thread, int64_t group) {
    T *plane = taps.plane(thread), *sums = taps.sums(thread);
    std::fill_n(sums, all * kLanes, T(0));
    for (int64_t n = 0; n < s.batch; ++n) {
      taps.fill(x + (n * s.groups + group) * in, plane);
      for (int64_t m = 0; m < s.out_channels; ++m) {
        const T* gradient = dy + ((n * s.groups + group) * s.out_channels + m) * out;
        T* to = sums + m * each * kLanes;
        int64_t tap = 0;
        for (; tap + 3 <= each; tap += 3) add_plane_products<T, 3>(taps, plane, tap, gradient, columns, to + tap * kLanes);
        for (; tap < each; ++tap) add_plane_products<T, 1>(taps, plane, tap, gradient, columns, to + tap * kLanes);
      }
    }
    for (int64_t i = 0; i < all; ++i) dw[group * all + i] = sum_lanes(Vec<T>::load(sums + i * kLanes));
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
