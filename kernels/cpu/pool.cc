// max_pool, average_pool and its gradient: plane by plane, tap by tap along rows.
#include <algorithm>
#include <limits>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/plane_windows.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

Windows windows_of(const TensorView& x, const Attributes& attributes) {
  return make_windows(x.dims, x.rank, attributes.get_ints(Attr::kernel_shape).data(), attributes);
}

// Tap of the first place of window o inside the input.
int64_t first_tap(const WindowAxis& a, int64_t o) {
  const int64_t start = o * a.stride - a.before;
  return start >= 0 ? 0 : (-start + a.dilation - 1) / a.dilation;
}

// Each result starts as the lowest number at its window's first place.
template <typename T>
void start_rows(const Windows& w, int64_t base, T* y, int64_t* index) {
  const WindowAxis &a = w.axis[0], &b = w.axis[1], &c = w.axis[2];
  const auto at = [](const WindowAxis& axis, int64_t o) { return o * axis.stride - axis.before + first_tap(axis, o) * axis.dilation; };
  std::fill_n(y, w.out_points(), -std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < a.out; ++i)
    for (int64_t j = 0; j < b.out; ++j) {
      const int64_t row = base + (at(a, i) * b.in + at(b, j)) * c.in;
      for (int64_t k = 0; k < c.out; ++k) *index++ = row + at(c, k);
    }
}

template <typename T>
void take_larger(const TapRow& row, const T* x, int64_t base, T* y, int64_t* index) {
  x += row.x;
  y += row.y;
  index += row.y;
  const int64_t place = base + row.x, stride = row.stride;
  for (int64_t i = 0; i < row.count; ++i) {
    const T value = x[i * stride];
    const bool larger = (value > y[i]) | (value != value);
    y[i] = larger ? value : y[i];
    index[i] = larger ? place + i * stride : index[i];
  }
}

// Reciprocal of the number of places of window o inside the input, or of all.
template <typename T>
T share(const WindowAxis& a, int64_t o, bool all) {
  const int64_t start = o * a.stride - a.before;
  if (all || (start >= 0 && start + a.extent() <= a.in)) return T(1) / static_cast<T>(a.kernel);
  const int64_t end = std::min(a.kernel, (a.in - 1 - start) / a.dilation + 1);
  return T(1) / static_cast<T>(end - first_tap(a, o));
}

// to[o] = from[o] · share of window o, over a plane of results.
template <typename T>
void scale_results(const Windows& w, bool all, const T* from, T* to) {
  const WindowAxis &a = w.axis[0], &b = w.axis[1], &c = w.axis[2];
  for (int64_t i = 0; i < a.out; ++i)
    for (int64_t j = 0; j < b.out; ++j) {
      const T outer = share<T>(a, i, all) * share<T>(b, j, all);
      for (int64_t k = 0; k < c.out; ++k) *to++ = *from++ * (outer * share<T>(c, k, all));
    }
}

template <typename T>
void run_average(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Windows w = windows_of(x, *args.attributes);
  const bool all = args.attributes->get_int(Attr::count_include_pad) != 0;
  parallel_for(args.threads, x.dims[0] * x.dims[1], [&](int64_t plane) {
    const T* from = static_cast<const T*>(x.data) + plane * w.in_points();
    T* to = static_cast<T*>(y.data) + plane * w.out_points();
    std::fill_n(to, w.out_points(), T(0));
    for_tap_rows(w, [&](int64_t, const TapRow& row) { add_tap(row, T(1), from, to); });
    scale_results(w, all, to, to);
  });
}

template <typename T>
void run_average_grad(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &dx = args.outputs[0];
  const Windows w = windows_of(dx, *args.attributes);
  const bool all = args.attributes->get_int(Attr::count_include_pad) != 0;
  T* scaled = static_cast<T*>(args.workspace);  // dy · share
  parallel_for(args.threads, dx.dims[0] * dx.dims[1], [&](int64_t plane) {
    T *from = scaled + plane * w.out_points(), *to = static_cast<T*>(dx.data) + plane * w.in_points();
    scale_results(w, all, static_cast<const T*>(dy.data) + plane * w.out_points(), from);
    std::fill_n(to, w.in_points(), T(0));
    for_tap_rows(w, [&](int64_t, const TapRow& row) { add_tap_back(row, T(1), from, to); });
  });
}

}  // namespace

void max_pool_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Windows w = windows_of(x, *args.attributes);
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(args.threads, x.dims[0] * x.dims[1], [&](int64_t plane) {
      const int64_t base = plane * w.in_points();
      const T* from = static_cast<const T*>(x.data) + base;
      T* to = static_cast<T*>(y.data) + plane * w.out_points();
      int64_t* index = static_cast<int64_t*>(args.outputs[1].data) + plane * w.out_points();
      start_rows(w, base, to, index);
      for_tap_rows(w, [&](int64_t, const TapRow& row) { take_larger(row, from, base, to, index); });
    });
  });
}

void average_pool_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_average<decltype(zero)>(args); });
}

void average_pool_grad_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_average_grad<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
