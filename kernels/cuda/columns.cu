#include "kernels/cuda/columns.h"

#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/cuda/windows.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int64_t kPerThread = 4;  // points of a thread
constexpr int64_t kMostBlocks = 1 << 20;

// Points of a plane as places along its three axes; a plane has fewer than 2^31 points wherever `small`.
struct Plane {
  int64_t size[3];
  bool small;
  Divider by_row, by_depth;

  Plane(int64_t a, int64_t b, int64_t c) : size{a, b, c}, small(a * b * c < INT64_C(1) << 31 && a * b * c > 0) {
    if (!small) return;
    by_row = Divider(static_cast<uint32_t>(c));
    by_depth = Divider(static_cast<uint32_t>(b));
  }
  __device__ void place(int64_t p, int64_t* at) const {
    const int64_t row = small ? by_row.quotient(static_cast<uint32_t>(p)) : p / size[2];
    at[0] = small ? by_depth.quotient(static_cast<uint32_t>(row)) : row / size[1];
    at[1] = row - at[0] * size[1];
    at[2] = p - row * size[2];
  }
};

struct Pass {
  ConvShape shape;
  ColumnChunk chunk;
  ColumnLayout layout;
  Plane plane;       // of the points that blocks walk through
  int64_t segments;  // of a line of points, one per block
};

// fn(line, first point, end) for the block's shares of `lines` lines of `points` points.
template <typename Fn>
__device__ void for_segments(const Pass& s, int64_t lines, int64_t points, const Fn& fn) {
  for (int64_t item = blockIdx.x; item < lines * s.segments; item += gridDim.x) {
    const int64_t line = item / s.segments, first = item % s.segments * kBlock * kPerThread, left = points - first;
    fn(line, first, left < kBlock * kPerThread ? points : first + kBlock * kPerThread);
  }
}

template <typename T>
__global__ void fill(const __grid_constant__ Pass s, const T* x, T* columns) {
  const WindowAxis *a = s.shape.windows.axis, &b = a[1], &c = a[2];
  const int64_t taps = a->kernel * b.kernel * c.kernel, channels = s.shape.groups * s.chunk.channels, rows = channels * taps;
  for_segments(s, s.chunk.images * rows, s.chunk.points, [&](int64_t line, int64_t first, int64_t end) {
    const int64_t image = line / rows, row = line % rows, tap = row % taps;
    const int64_t plane = (s.chunk.image + image) * channels + row / taps;
    const T* from = x + plane * a->in * b.in * c.in;
    T* to = columns + image * s.layout.image_stride + row * s.layout.row_stride;
    const int64_t shift[3] = {tap / c.kernel / b.kernel * a->dilation - a->before, tap / c.kernel % b.kernel * b.dilation - b.before,
                              tap % c.kernel * c.dilation - c.before};
    for (int64_t p = first + threadIdx.x; p < end; p += kBlock) {
      int64_t o[3];
      s.plane.place(s.chunk.point + p, o);
      const int64_t i = o[0] * a->stride + shift[0], j = o[1] * b.stride + shift[1], k = o[2] * c.stride + shift[2];
      const bool inside = i >= 0 && i < a->in && j >= 0 && j < b.in && k >= 0 && k < c.in;
      to[p] = inside ? from[(i * b.in + j) * c.in + k] : T(0.0f);
    }
  });
}

template <typename T>
__global__ void fold(const __grid_constant__ Pass s, const WideOf<T>* columns, T* dx) {
  const WindowAxis *a = s.shape.windows.axis, &b = a[1], &c = a[2];
  const int64_t points = a->in * b.in * c.in, results = a->out * b.out * c.out, taps = a->kernel * b.kernel * c.kernel;
  const int64_t planes = s.shape.groups * s.chunk.channels;
  for_segments(s, s.chunk.images * planes, points, [&](int64_t line, int64_t first, int64_t end) {
    const int64_t image = s.chunk.image + line / planes, group = line % planes / s.chunk.channels,
                  channel = s.chunk.channel + line % s.chunk.channels;
    T* to = dx + ((image * s.shape.groups + group) * s.shape.in_channels + channel) * points;
    const WideOf<T>* from = columns + line * taps * results;
    for (int64_t p = first + threadIdx.x; p < end; p += kBlock) {
      int64_t x[3];
      s.plane.place(p, x);
      WideOf<T> sum = 0;
      for (int64_t t = 0; t < a->kernel; ++t) {
        const int64_t i = result_of(*a, x[0], t);
        for (int64_t u = 0; i >= 0 && u < b.kernel; ++u) {
          const int64_t j = result_of(b, x[1], u);
          for (int64_t v = 0; j >= 0 && v < c.kernel; ++v) {
            const int64_t k = result_of(c, x[2], v);
            if (k >= 0) sum += from[((t * b.kernel + u) * c.kernel + v) * results + (i * b.out + j) * c.out + k];
          }
        }
      }
      to[p] = narrow<T>(sum);
    }
  });
}

template <typename T>
__global__ void add_all(int64_t n, const T* addend, T* sum) {
  for_items(n, [&](int64_t i) { sum[i] += addend[i]; });
}

template <typename T>
__global__ void narrow_all(int64_t n, const WideOf<T>* from, T* to) {
  for_items(n, [&](int64_t i) { to[i] = narrow<T>(from[i]); });
}

template <typename... A>
void launch_lines(const KernelArgs& args, Pass& pass, int64_t lines, int64_t points, void (*kernel)(Pass, A...), A... arguments) {
  pass.segments = (points + kBlock * kPerThread - 1) / (kBlock * kPerThread);
  const int64_t blocks = lines * pass.segments;
  if (blocks > 0) launch(args, static_cast<unsigned>(std::min(blocks, kMostBlocks)), kBlock, 0, kernel, pass, arguments...);
}

}  // namespace

void fill_columns(const KernelArgs& args, const ConvShape& shape, const ColumnChunk& chunk, const ColumnLayout& layout, const TensorView& x,
                  void* columns) {
  const WindowAxis* a = shape.windows.axis;
  Pass pass = {shape, chunk, layout, Plane(a[0].out, a[1].out, a[2].out), 0};
  const int64_t lines = chunk.images * shape.groups * chunk.channels * shape.windows.taps();
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_lines(args, pass, lines, chunk.points, fill<T>, x.as<const T>(), static_cast<T*>(columns));
  });
}

void fold_columns(const KernelArgs& args, const ConvShape& shape, const ColumnChunk& chunk, const void* columns, const TensorView& dx) {
  const WindowAxis* a = shape.windows.axis;
  Pass pass = {shape, chunk, {}, Plane(a[0].in, a[1].in, a[2].in), 0};
  visit_floating(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_lines(args, pass, chunk.images * shape.groups * chunk.channels, shape.windows.in_points(), fold<T>,
                 static_cast<const WideOf<T>*>(columns), dx.as<T>());
  });
}

void add_to(const KernelArgs& args, int64_t count, DType dtype, const void* addend, void* sum) {
  visit_floating(dtype, [&](auto zero) {
    using T = WideOf<decltype(zero)>;
    launch_over(args, count, add_all<T>, static_cast<const T*>(addend), static_cast<T*>(sum));
  });
}

void narrow_to(const KernelArgs& args, DType dtype, const void* from, const TensorView& to) {
  visit_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, to.elements(), narrow_all<T>, static_cast<const WideOf<T>*>(from), to.as<T>());
  });
}

}  // namespace zeroplan::kernels_cuda
