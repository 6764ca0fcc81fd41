#pragma once
// Convolutions with one input channel per group, plane by plane.
#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/plane_windows.h"
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// x [N, groups, …], w [groups·M, 1, taps] → y [N, groups·M, …]
template <typename T>
void conv_by_planes(const KernelArgs& args, const ConvShape& s) {
  const T *x = static_cast<const T*>(args.inputs[0].data), *w = static_cast<const T*>(args.inputs[1].data);
  T* y = static_cast<T*>(args.outputs[0].data);
  const int64_t in = s.windows.in_points(), out = s.windows.out_points(), taps = s.windows.taps(), channels = s.groups * s.out_channels;
  parallel_for(args.threads, s.batch * channels, [&](int64_t plane) {
    const int64_t channel = plane % channels;
    const T* from = x + (plane / channels * s.groups + channel / s.out_channels) * in;
    T* to = y + plane * out;
    std::fill_n(to, out, T(0));
    for_tap_rows(s.windows, [&](int64_t tap, const TapRow& row) { add_tap(row, w[channel * taps + tap], from, to); });
  });
}

// dy, w → dx
template <typename T>
void conv_grad_input_by_planes(const KernelArgs& args, const ConvShape& s) {
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

// x, dy → dw
template <typename T>
void conv_grad_weight_by_planes(const KernelArgs& args, const ConvShape& s) {
  const T *x = static_cast<const T*>(args.inputs[0].data), *dy = static_cast<const T*>(args.inputs[1].data);
  T* dw = static_cast<T*>(args.outputs[0].data);
  const int64_t in = s.windows.in_points(), out = s.windows.out_points(), taps = s.windows.taps(), channels = s.groups * s.out_channels;
  parallel_for(args.threads, channels, [&](int64_t channel) {
    T* to = dw + channel * taps;
    std::fill_n(to, taps, T(0));
    for (int64_t n = 0; n < s.batch; ++n) {
      const T *from = x + (n * s.groups + channel / s.out_channels) * in, *gradient = dy + (n * channels + channel) * out;
      for_tap_rows(s.windows, [&](int64_t tap, const TapRow& row) { to[tap] += tap_product(row, from, gradient); });
    }
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
