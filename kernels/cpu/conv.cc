// conv and conv_grad_input: products of rows of channels with packed weights, chunk by chunk. Each result is a sum over taps and channels
// in an order that depends on the shapes alone.
#include <cstring>

#include "kernels/cpu/conv_layout.h"
#include "kernels/cpu/conv_planes.h"
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kPointSlice = 192;  // points of the result that take one run of weights while it lies in the first cache

// Points of a chunk with the same taps: all of them forward; backward, those with equal remainders by the strides.
template <typename T>
struct Points {
  const T* from;
  T* to;
  const int64_t *from_table, *to_table;  // offset of a point's channels, index of its row of lanes
  int64_t count;
};

template <typename T, int R, int N>
void gather_product(const Points<T>& p, int64_t point, const ConvSegment* segment, int64_t segments, const T* weights) {
  constexpr int64_t kWidth = N * kLanes;
  Vec<T> sum[R][N];
  const T* a[R];
  T* c[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    a[r] = p.from + p.from_table[point + r];
    c[r] = p.to + p.to_table[point + r] * kWidth;
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) sum[r][v] = Vec<T>::load(c[r] + v * kLanes);
  }
  for (const ConvSegment* end = segment + segments; segment < end; ++segment) {
    const T* w = weights + segment->row * kWidth;
    for (int64_t k = segment->offset, last = k + segment->length; k < last; ++k, w += kWidth) {
      Vec<T> row[N];
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) row[v] = Vec<T>::load(w + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Vec<T> x(a[r][k]);
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) sum[r][v] += x * row[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) sum[r][v].store(c[r] + v * kLanes);
  }
}

template <typename T, int N>
void gather_points(const Points<T>& p, int64_t first, int64_t last, const ConvSegment* segment, int64_t segments, const T* weights) {
  constexpr int R = MicroTile<T>::kRows;
  int64_t i = first;
  for (; i + R <= last; i += R) gather_product<T, R, N>(p, i, segment, segments, weights);
  if constexpr (R > 4) {
    if (i + 4 <= last) gather_product<T, 4, N>(p, i, segment, segments, weights), i += 4;
  }
  if constexpr (R > 2) {
    if (i + 2 <= last) gather_product<T, 2, N>(p, i, segment, segments, weights), i += 2;
  }
  for (; i < last; ++i) gather_product<T, 1, N>(p, i, segment, segments, weights);
}

template <typename T>
void gather_width(int64_t vectors, const Points<T>& p, int64_t first, int64_t last, const ConvSegment* s, int64_t segments, const T* w) {
  constexpr int kMost = MicroTile<T>::kVectors;
  if (vectors == kMost) return gather_points<T, kMost>(p, first, last, s, segments, w);
  if constexpr (kMost > 3) {
    if (vectors == 3) return gather_points<T, 3>(p, first, last, s, segments, w);
  }
  if constexpr (kMost > 2) {
    if (vectors == 2) return gather_points<T, 2>(p, first, last, s, segments, w);
  }
  gather_points<T, 1>(p, first, last, s, segments, w);
}

// Number of segments from here that one pass over the points takes: passes of about equal depth.
int64_t segments_at_once(const ConvSegment* s, int64_t left) {
  int64_t total = 0, n = 1;
  for (int64_t i = 0; i < left; ++i) total += s[i].length;
  const int64_t passes = ceil_to(total, kConvDepth), share = ceil_to(total, passes);
  int64_t depth = s[0].length;
  while (n < left && depth < share && depth + s[n].length <= kConvDepth) depth += s[n++].length;
  return n;
}

// A phase: results of each axis whose index has this remainder, and the taps that reach them.
struct Phase {
  int64_t remainder[3];
};

// Taps of an axis that meet results with this remainder.
bool meets(const ConvPass& pass, const WindowAxis& a, int64_t tap, int64_t remainder) {
  return !pass.backward || tap * a.dilation % a.stride == remainder;
}
int64_t tap_offset(const ConvPass& pass, const WindowAxis& a, int64_t tap, int64_t remainder) {
  return pass.backward ? -((tap * a.dilation - remainder) / a.stride) : tap * a.dilation;
}

class Tables {
 public:
  Tables(const ConvShape& shape, const ConvPass& pass, const Chunk& chunk, int64_t* from, int64_t* to, ConvSegment* segments)
      : shape_(shape), pass_(pass), chunk_(chunk), from_(from), to_(to), segments_(segments) {
    point_ = pass.from_channels * shape.groups;
  }

  int64_t fill_points(const Phase& phase) {
    int64_t count = 0;
    const Windows& w = shape_.windows;
    for (int64_t image = 0; image < chunk_.images; ++image)
      for (int64_t i = 0; i < extent(0); ++i)
        for (int64_t j = 0; j < extent(1); ++j) {
          if (!in_phase(0, i, phase) || !in_phase(1, j, phase)) continue;
          const int64_t row = (image * pass_.span[0] + at(w.axis[0], 0, i, phase)) * pass_.span[1] + at(w.axis[1], 1, j, phase);
          const int64_t line = ((image * extent(0) + i) * extent(1) + j) * extent(2);
          for (int64_t k = 0; k < extent(2); ++k) {
            if (!in_phase(2, k, phase)) continue;
            from_[count] = (row * pass_.span[2] + at(w.axis[2], 2, k, phase)) * point_;
            to_[count++] = line + k;
          }
        }
    return count;
  }

  // In the order of the packed rows; neighbours in memory are joined, long ones cut.
  int64_t fill_segments(const Phase& phase) {
    const Windows& w = shape_.windows;
    const int64_t taps = w.taps();
    int64_t count = 0;
    for (int64_t place = 0; place < taps; ++place) {
      const int64_t tap = pass_.backward ? taps - 1 - place : place;
      const int64_t t[3] = {tap / w.axis[2].kernel / w.axis[1].kernel, tap / w.axis[2].kernel % w.axis[1].kernel, tap % w.axis[2].kernel};
      int64_t offset = 0;
      bool met = true;
      for (int i = 0; i < 3; ++i) {
        met = met && meets(pass_, w.axis[i], t[i], phase.remainder[i]);
        if (met) offset = offset * pass_.span[i] + tap_offset(pass_, w.axis[i], t[i], phase.remainder[i]);
      }
      if (met) count = add(count, {offset * point_, pass_.from_channels, place * pass_.from_channels});
    }
    return count;
  }

 private:
  int64_t extent(int i) const {
    const WindowAxis& a = shape_.windows.axis[i];
    return i == shape_.windows.first ? chunk_.rows : pass_.backward ? a.in : a.out;
  }
  int64_t first(int i) const { return i == shape_.windows.first ? chunk_.row : 0; }
  bool in_phase(int i, int64_t index, const Phase& phase) const {
    if (!pass_.backward) return true;
    const WindowAxis& a = shape_.windows.axis[i];
    const int64_t padded = first(i) + index + a.before;
    return padded - floor_to(padded, a.stride) * a.stride == phase.remainder[i];
  }
  int64_t at(const WindowAxis& a, int i, int64_t index, const Phase& phase) const {
    if (!pass_.backward) return index * pass_.pace(a);
    return floor_to(first(i) + index + a.before - phase.remainder[i], a.stride) - buffer_origin(pass_, a, first(i));
  }
  int64_t add(int64_t count, ConvSegment s) {
    while (s.length > 0) {
      ConvSegment* last = count > 0 ? segments_ + count - 1 : nullptr;
      const bool follows =
          last && last->length < kConvDepth && last->offset + last->length == s.offset && last->row + last->length == s.row;
      if (!follows) last = segments_ + count++, *last = {s.offset, 0, s.row};
      const int64_t taken = std::min(s.length, kConvDepth - last->length);
      last->length += taken;
      s = {s.offset + taken, s.length - taken, s.row + taken};
    }
    return count;
  }

  const ConvShape& shape_;
  const ConvPass& pass_;
  const Chunk& chunk_;
  int64_t *from_, *to_, point_;
  ConvSegment* segments_;
};

template <typename T>
void run_phase(const LaneBlocks<T>& blocks, const ConvPass& pass, const Points<T>& points, const T* weights, int64_t weight_rows,
               int64_t result_rows, const ConvSegment* segments, int64_t count, int threads) {
  const int64_t slices = ceil_to(points.count, kPointSlice);
  parallel_for(threads, blocks.total() * slices, [&](int64_t item) {
    const int64_t block = item / slices, first = item % slices * kPointSlice, last = std::min(points.count, first + kPointSlice);
    Points<T> own = points;
    own.from += blocks.group(block) * pass.from_channels;
    own.to += blocks.offset(block, result_rows);
    const T* w = weights + blocks.offset(block, weight_rows);
    for (int64_t s = 0; s < count;) {
      const int64_t n = segments_at_once(segments + s, count - s);
      gather_width<T>(blocks.width(block) / kLanes, own, first, last, segments + s, n, w);
      s += n;
    }
  });
}

template <typename T>
struct PassBuffers {
  T *weights, *operand, *result;
  int64_t *from_table, *to_table;
  ConvSegment* segments;
  PassBuffers(const KernelArgs& args, const ConvWorkspace& w) {
    char* base = static_cast<char*>(args.workspace);
    weights = reinterpret_cast<T*>(base + w.weights);
    operand = reinterpret_cast<T*>(base + w.operand);
    result = reinterpret_cast<T*>(base + w.result);
    from_table = reinterpret_cast<int64_t*>(base + w.from_table);
    to_table = reinterpret_cast<int64_t*>(base + w.to_table);
    segments = reinterpret_cast<ConvSegment*>(base + w.segments);
  }
};

template <typename T>
void run_chunk(const ConvShape& shape, const ConvPass& pass, const LaneBlocks<T>& blocks, const Chunk& chunk, const PassBuffers<T>& b,
               int64_t points, int threads) {
  const WindowAxis* axis = shape.windows.axis;
  Tables tables(shape, pass, chunk, b.from_table, b.to_table, b.segments);
  const int64_t phases[3] = {pass.backward ? axis[0].stride : 1, pass.backward ? axis[1].stride : 1, pass.backward ? axis[2].stride : 1};
  for (int64_t i = 0; i < phases[0] * phases[1] * phases[2]; ++i) {
    const Phase phase{{i / phases[2] / phases[1], i / phases[2] % phases[1], i % phases[2]}};
    const int64_t segments = tables.fill_segments(phase);
    if (segments == 0) continue;
    const Points<T> own{b.operand, b.result, b.from_table, b.to_table, tables.fill_points(phase)};
    run_phase(blocks, pass, own, b.weights, shape.windows.taps() * pass.from_channels, points, b.segments, segments, threads);
  }
}

// from [N, groups·from_channels, …], w → to [N, groups·to_channels, …].
template <typename T>
void run_pass(const KernelArgs& args, const ConvShape& shape, bool backward) {
  const ConvPass pass = conv_pass(shape, backward);
  const LaneBlocks<T> blocks(shape.groups, pass.to_channels);
  const PassBuffers<T> b(args, conv_workspace(shape, pass, sizeof(T)));
  const Windows& w = shape.windows;
  Operand<T> from{static_cast<const T*>(args.inputs[0].data), pass.from_channels * shape.groups, {}};
  for (int i = 0; i < 3; ++i) from.extent[i] = backward ? w.axis[i].out : w.axis[i].in;
  const int64_t plane = backward ? w.in_points() : w.out_points();
  const int64_t row_points = plane / (backward ? w.axis[w.first].in : w.axis[w.first].out);
  pack_weights(shape, pass, static_cast<const T*>(args.inputs[1].data), b.weights, args.threads);
  for (int64_t i = 0; i < pass.chunks; ++i) {
    const Chunk chunk = chunk_at(shape, pass, i);
    const int64_t points = chunk.rows * row_points, rows = chunk.images * points;
    gather_operand(shape, pass, chunk, from, b.operand, args.threads);
    std::memset(b.result, 0, static_cast<size_t>(rows * blocks.groups * blocks.padded) * sizeof(T));
    run_chunk(shape, pass, blocks, chunk, b, rows, args.threads);
    const Planes<T> to{static_cast<T*>(args.outputs[0].data), plane, chunk.row * row_points, points};
    blocks_to_planes(blocks, chunk, b.result, to, args.threads);
  }
}

}  // namespace

void conv_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1];
  const ConvShape shape = conv_shape(x.dims, w.dims, x.rank, *args.attributes);
  visit_floating(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (shape.by_planes()) return conv_by_planes<T>(args, shape);
    run_pass<T>(args, shape, false);
  });
}

void conv_grad_input_kernel(const KernelArgs& args) {
  const TensorView &dx = args.outputs[0], &w = args.inputs[1];
  const ConvShape shape = conv_shape(dx.dims, w.dims, dx.rank, *args.attributes);
  visit_floating(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (shape.by_planes()) return conv_grad_input_by_planes<T>(args, shape);
    run_pass<T>(args, shape, true);
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
