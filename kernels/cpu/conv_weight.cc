// conv_grad_weight: dw[tap, c][m] = Σ x[point + tap][c] · dy[point][m], summed up in registers over some points at a time.
#include <cstring>

#include "kernels/cpu/conv_layout.h"
#include "kernels/cpu/conv_planes.h"
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kPointSlice = 128;  // points summed up before a sum goes back to memory

// Rows of x's channels (a[table[p]]: R of them at point p) and lanes of dy (b[p]).
template <typename T>
struct WeightOperands {
  const T* a;
  const int64_t* table;
  const T* b;
  int64_t points;
  T* c;  // rows of sums
};

template <typename T, int R, int N>
void weight_product(const WeightOperands<T>& o) {
  constexpr int64_t kWidth = N * kLanes;
  Vec<T> sum[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) sum[r][v] = Vec<T>(T(0));
  }
  const T* b = o.b;
  for (int64_t p = 0; p < o.points; ++p, b += kWidth) {
    const T* a = o.a + o.table[p];
    Vec<T> row[N];
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) row[v] = Vec<T>::load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec<T> x(a[r]);
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sum[r][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
      T* c = o.c + r * kWidth + v * kLanes;
      (Vec<T>::load(c) + sum[r][v]).store(c);
    }
  }
}

// `rows` neighbouring channels.
template <typename T, int N>
void weight_rows(WeightOperands<T> o, int64_t rows) {
  constexpr int R = MicroTile<T>::kRows;
  const auto advance = [&](int64_t n) {
    o.a += n;
    o.c += n * N * kLanes;
    rows -= n;
  };
  for (; rows >= R; advance(R)) weight_product<T, R, N>(o);
  if constexpr (R > 4) {
    if (rows >= 4) weight_product<T, 4, N>(o), advance(4);
  }
  if constexpr (R > 2) {
    if (rows >= 2) weight_product<T, 2, N>(o), advance(2);
  }
  for (; rows > 0; advance(1)) weight_product<T, 1, N>(o);
}

template <typename T>
void weight_width(int64_t vectors, const WeightOperands<T>& o, int64_t rows) {
  constexpr int kMost = MicroTile<T>::kVectors;
  if (vectors == kMost) return weight_rows<T, kMost>(o, rows);
  if constexpr (kMost > 3) {
    if (vectors == 3) return weight_rows<T, 3>(o, rows);
  }
  if constexpr (kMost > 2) {
    if (vectors == 2) return weight_rows<T, 2>(o, rows);
  }
  weight_rows<T, 1>(o, rows);
}

// Taps whose channels follow each other in the buffer are one run of rows.
int64_t taps_per_run(const ConvShape& shape) {
  const WindowAxis& last = shape.windows.axis[2];
  return shape.groups == 1 && last.dilation == 1 ? last.kernel : 1;
}

int64_t fill_table(const ConvShape& shape, const ConvPass& pass, const Chunk& chunk, int64_t* table) {
  const WindowAxis* a = shape.windows.axis;
  int64_t extent[3] = {a[0].out, a[1].out, a[2].out}, count = 0;
  extent[shape.windows.first] = chunk.rows;
  for (int64_t image = 0; image < chunk.images; ++image)
    for (int64_t i = 0; i < extent[0]; ++i)
      for (int64_t j = 0; j < extent[1]; ++j) {
        const int64_t row = ((image * pass.span[0] + i * pass.pace(a[0])) * pass.span[1] + j * pass.pace(a[1])) * pass.span[2];
        for (int64_t k = 0; k < extent[2]; ++k) table[count++] = (row + k * pass.pace(a[2])) * pass.from_channels * shape.groups;
      }
  return count;
}

template <typename T>
void add_chunk(const ConvShape& shape, const ConvPass& pass, const LaneBlocks<T>& blocks, const WeightOperands<T>& all, int threads) {
  const WindowAxis* a = shape.windows.axis;
  const int64_t joined = taps_per_run(shape), runs = shape.windows.taps() / joined, length = joined * shape.in_channels;
  const int64_t rows = runs * length;
  parallel_for(threads, blocks.total() * runs, [&](int64_t item) {
    const int64_t block = item / runs, tap = item % runs * joined, width = blocks.width(block);
    const int64_t t[3] = {tap / a[2].kernel / a[1].kernel, tap / a[2].kernel % a[1].kernel, tap % a[2].kernel};
    int64_t offset = 0;
    for (int i = 0; i < 3; ++i) offset = offset * pass.span[i] + t[i] * a[i].dilation;
    for (int64_t p = 0; p < all.points; p += kPointSlice) {
      WeightOperands<T> o = all;
      o.a += offset * shape.in_channels * shape.groups + blocks.group(block) * shape.in_channels;
      o.table += p;
      o.b += blocks.offset(block, all.points) + p * width;
      o.points = std::min(kPointSlice, all.points - p);
      o.c += blocks.offset(block, rows) + tap * shape.in_channels * width;
      weight_width(width / kLanes, o, length);
    }
  });
}

template <typename T>
void run_weight(const KernelArgs& args, const ConvShape& shape) {
  const ConvPass pass = conv_pass(shape, false);
  const ConvWorkspace at = conv_workspace(shape, pass, sizeof(T));
  const LaneBlocks<T> blocks(shape.groups, shape.out_channels);
  const Windows& w = shape.windows;
  char* base = static_cast<char*>(args.workspace);
  T *sums = reinterpret_cast<T*>(base + at.weights), *buffer = reinterpret_cast<T*>(base + at.operand);
  T* lanes = reinterpret_cast<T*>(base + at.result);
  int64_t* table = reinterpret_cast<int64_t*>(base + at.from_table);
  const Operand<T> x{
      static_cast<const T*>(args.inputs[0].data), shape.in_channels * shape.groups, {w.axis[0].in, w.axis[1].in, w.axis[2].in}};
  const int64_t row_points = w.out_points() / w.axis[w.first].out;
  std::memset(sums, 0, static_cast<size_t>(w.taps() * shape.in_channels * blocks.groups * blocks.padded) * sizeof(T));
  for (int64_t i = 0; i < pass.chunks; ++i) {
    const Chunk chunk = chunk_at(shape, pass, i);
    const Planes<const T> dy{static_cast<const T*>(args.inputs[1].data), w.out_points(), chunk.row * row_points, chunk.rows * row_points};
    gather_operand(shape, pass, chunk, x, buffer, args.threads);
    planes_to_blocks(blocks, chunk, dy, lanes, args.threads);
    const int64_t points = fill_table(shape, pass, chunk, table);
    add_chunk(shape, pass, blocks, {buffer, table, lanes, points, sums}, args.threads);
  }
  unpack_weights(shape, pass, sums, static_cast<T*>(args.outputs[0].data), args.threads);
}

}  // namespace

void conv_grad_weight_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &dw = args.outputs[0];
  const ConvShape shape = conv_shape(x.dims, dw.dims, x.rank, *args.attributes);
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (shape.by_planes()) return conv_grad_weight_by_planes<T>(args, shape);
    run_weight<T>(args, shape);
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
