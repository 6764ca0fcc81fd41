// max_pool, average_pool and its gradient, in one to three spatial axes: a thread per result, which walks through its window in order.
#include <limits>

#include "graph/ops/conv_shape.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/cuda/windows.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// Taps [first, last) of a window that lie inside the input, whose tap t is input element start + t · dilation.
struct Taps {
  int64_t start, first, last;
  __device__ Taps(const WindowAxis& a, int64_t o) : start(o * a.stride - a.before) {
    first = start >= 0 ? 0 : (-start + a.dilation - 1) / a.dilation;
    const int64_t end = start >= a.in ? 0 : (a.in - 1 - start) / a.dilation + 1;
    last = end < a.kernel ? end : a.kernel;
  }
  __device__ int64_t count() const { return last - first; }
};

// A result: its plane, and its place in it.
struct Place {
  int64_t plane, at[3];
  __device__ Place(int64_t i, int64_t d, int64_t h, int64_t w) : plane(i / w / h / d), at{i / w / h % d, i / w % h, i % w} {}
};

// fn(element of the plane) for all taps of result o inside the plane, in order; row() in front of each row of taps.
template <typename Row, typename Fn>
__device__ void for_taps(const Windows& w, const Place& o, const Row& row, const Fn& fn) {
  const WindowAxis &a = w.axis[0], &b = w.axis[1], &c = w.axis[2];
  const Taps deep(a, o.at[0]), down(b, o.at[1]), along(c, o.at[2]);
  for (int64_t t = deep.first; t < deep.last; ++t)
    for (int64_t u = down.first; u < down.last; ++u) {
      const int64_t line = ((deep.start + t * a.dilation) * b.in + down.start + u * b.dilation) * c.in + along.start;
      row();
      for (int64_t v = along.first; v < along.last; ++v) fn(line + v * c.dilation);
    }
}

// x [planes, in points], y and index [planes, out points]. The first of equal ones; a nan wins.
template <typename T>
__global__ void take_largest(int64_t n, const __grid_constant__ Windows w, const T* x, T* y, int64_t* index) {
  for_items(n, [&](int64_t i) {
    const Place o(i, w.axis[0].out, w.axis[1].out, w.axis[2].out);
    const int64_t base = o.plane * w.axis[0].in * w.axis[1].in * w.axis[2].in;
    WideOf<T> best = -std::numeric_limits<WideOf<T>>::infinity();
    int64_t place = -1;
    for_taps(
        w, o, [] {},
        [&](int64_t at) {
          const WideOf<T> value = widen(x[base + at]);
          if (place >= 0 && !(value > best || value != value)) return;
          best = value;
          place = base + at;
        });
    y[i] = narrow<T>(best);
    index[i] = place;
  });
}

// What the sum over window o is divided by: all places, or those inside the input.
__device__ double divisor_of(const Windows& w, const int64_t* at, bool all) {
  double places = 1;
  for (int d = 0; d < 3; ++d) places *= static_cast<double>(all ? w.axis[d].kernel : Taps(w.axis[d], at[d]).count());
  return places;
}

// x [planes, in points], y [planes, out points]
template <typename T>
__global__ void average(int64_t n, const __grid_constant__ Windows w, bool all, const T* x, T* y) {
  for_items(n, [&](int64_t i) {
    const Place o(i, w.axis[0].out, w.axis[1].out, w.axis[2].out);
    const T* plane = x + o.plane * w.axis[0].in * w.axis[1].in * w.axis[2].in;
    double total = 0;
    WideOf<T> line = 0;
    for_taps(
        w, o,
        [&] {
          total += static_cast<double>(line);
          line = 0;
        },
        [&](int64_t at) { line += widen(plane[at]); });
    y[i] = narrow<T>((total + static_cast<double>(line)) / divisor_of(w, o.at, all));
  });
}

// dy [planes, out points], dx [planes, in points]: each input element adds up what the windows over it have.
template <typename T>
__global__ void average_back(int64_t n, const __grid_constant__ Windows w, bool all, const T* dy, T* dx) {
  for_items(n, [&](int64_t i) {
    const WindowAxis &a = w.axis[0], &b = w.axis[1], &c = w.axis[2];
    const Place x(i, a.in, b.in, c.in);
    const T* plane = dy + x.plane * a.out * b.out * c.out;
    double total = 0;
    for (int64_t t = 0; t < a.kernel; ++t) {
      int64_t o[3] = {result_of(a, x.at[0], t), 0, 0};
      for (int64_t u = 0; o[0] >= 0 && u < b.kernel; ++u) {
        o[1] = result_of(b, x.at[1], u);
        for (int64_t v = 0; o[1] >= 0 && v < c.kernel; ++v) {
          o[2] = result_of(c, x.at[2], v);
          if (o[2] < 0) continue;
          total += static_cast<double>(widen(plane[(o[0] * b.out + o[1]) * c.out + o[2]])) / divisor_of(w, o, all);
        }
      }
    }
    dx[i] = narrow<T>(total);
  });
}

Windows windows_of(const TensorView& x, const Attributes& attributes) {
  return make_windows(x.dims, x.rank, attributes.get_ints(Attr::kernel_shape).data(), attributes);
}

bool counts_all(const KernelArgs& args) { return args.attributes->get_int(Attr::count_include_pad) != 0; }

}  // namespace

void max_pool_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0], &index = args.outputs[1];
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, y.elements(), take_largest<T>, windows_of(x, *args.attributes), x.as<T>(), y.as<T>(), index.as<int64_t>());
  });
}

void average_pool_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, y.elements(), average<T>, windows_of(x, *args.attributes), counts_all(args), x.as<T>(), y.as<T>());
  });
}

void average_pool_grad_kernel(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &dx = args.outputs[0];
  visit_floating(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, dx.elements(), average_back<T>, windows_of(dx, *args.attributes), counts_all(args), dy.as<T>(), dx.as<T>());
  });
}

}  // namespace zeroplan::kernels_cuda
