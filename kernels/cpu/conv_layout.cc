#include "kernels/cpu/conv_layout.h"

#include <cstring>
#include <type_traits>

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kChannelStripe = 64;

template <typename T>
void zero(T* to, int64_t ld, int64_t rows, int64_t count) {
  for (int64_t i = 0; i < rows; ++i) std::memset(to + i * ld, 0, static_cast<size_t>(count) * sizeof(T));
}

// A run of points along the last axis: place i of the buffer is element origin + i·step.
struct Run {
  int64_t origin, step, extent, span;
};

template <typename T>
void gather_run(const Run& run, const T* from, int64_t plane, int64_t channels, T* to, int64_t point) {
  const int64_t begin = std::clamp<int64_t>(-floor_to(run.origin, run.step), 0, run.span);
  const int64_t end = std::clamp<int64_t>(ceil_to(run.extent - run.origin, run.step), begin, run.span);
  zero(to, point, from ? begin : run.span, channels);
  if (!from) return;
  from += run.origin + begin * run.step;
  to += begin * point;
  if (run.step == 1 && begin < end) transpose_tile(from, plane, channels, end - begin, to, point);
  if (run.step > 1)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < end - begin; ++i) to[i * point + c] = from[c * plane + i * run.step];
  zero(to + (end - begin) * point, point, run.span - end, channels);
}

}  // namespace

Chunk chunk_at(const ConvShape& shape, const ConvPass& pass, int64_t index) {
  const WindowAxis& axis = shape.windows.axis[shape.windows.first];
  const int64_t extent = pass.backward ? axis.in : axis.out;
  if (pass.bands == 1) {
    const int64_t first = index * pass.images;
    return {first, std::min(pass.images, shape.batch - first), 0, extent};
  }
  const int64_t row = index % pass.bands * pass.rows;
  return {index / pass.bands, 1, row, std::min(pass.rows, extent - row)};
}

int64_t buffer_origin(const ConvPass& pass, const WindowAxis& axis, int64_t first_result) {
  if (!pass.backward) return first_result * axis.stride - axis.before;
  return -floor_to(-(first_result + axis.before - (axis.extent() - 1)), axis.stride);
}

template <typename T>
void gather_operand(const ConvShape& shape, const ConvPass& pass, const Chunk& chunk, const Operand<T>& from, T* buffer, int threads) {
  const Windows& w = shape.windows;
  const int64_t rows = pass.span[0] * pass.span[1], stripes = ceil_to(from.channels, kChannelStripe);
  const int64_t plane = from.extent[0] * from.extent[1] * from.extent[2];
  int64_t origin[3], step[3];
  for (int i = 0; i < 3; ++i) {
    origin[i] = buffer_origin(pass, w.axis[i], i == w.first ? chunk.row : 0);
    step[i] = pass.step(w.axis[i]);
  }
  const Run run{origin[2], step[2], from.extent[2], pass.span[2]};
  parallel_for(threads, chunk.images * rows * stripes, [&](int64_t item) {
    const int64_t stripe = item % stripes * kChannelStripe, row = item / stripes % rows, image = item / stripes / rows;
    const int64_t at0 = row / pass.span[1] * step[0] + origin[0], at1 = row % pass.span[1] * step[1] + origin[1];
    const bool inside = at0 >= 0 && at0 < from.extent[0] && at1 >= 0 && at1 < from.extent[1];
    const int64_t first = ((chunk.image + image) * from.channels + stripe) * plane + (at0 * from.extent[1] + at1) * from.extent[2];
    T* to = buffer + (image * rows + row) * pass.span[2] * from.channels + stripe;
    gather_run(run, inside ? from.data + first : nullptr, plane, std::min(kChannelStripe, from.channels - stripe), to, from.channels);
  });
}

template <typename T>
void planes_to_blocks(const LaneBlocks<T>& blocks, const Chunk& chunk, const Planes<const T>& from, T* to, int threads) {
  const int64_t rows = chunk.images * from.points;
  parallel_for(threads, blocks.total() * chunk.images, [&](int64_t item) {
    const int64_t block = item / chunk.images, image = item % chunk.images, width = blocks.width(block), used = blocks.used(block);
    const int64_t channel = ((chunk.image + image) * blocks.groups + blocks.group(block)) * blocks.channels + blocks.first(block);
    T* lanes = to + blocks.offset(block, rows) + image * from.points * width;
    transpose_tile(from.data + channel * from.plane + from.first, from.plane, used, from.points, lanes, width);
    if (used < width) zero(lanes + used, width, from.points, width - used);
  });
}

template <typename T>
void blocks_to_planes(const LaneBlocks<T>& blocks, const Chunk& chunk, const T* from, const Planes<T>& to, int threads) {
  const int64_t rows = chunk.images * to.points;
  parallel_for(threads, blocks.total() * chunk.images, [&](int64_t item) {
    const int64_t block = item / chunk.images, image = item % chunk.images, width = blocks.width(block);
    const int64_t channel = ((chunk.image + image) * blocks.groups + blocks.group(block)) * blocks.channels + blocks.first(block);
    transpose_tile(from + blocks.offset(block, rows) + image * to.points * width, width, to.points, blocks.used(block),
                   to.data + channel * to.plane + to.first, to.plane);
  });
}

namespace {

// Forward: lanes are output channels, whose weights [C/groups, taps] follow each other. Sixteen lanes by sixteen weights at a time, through
// a tile, as the rows of neighbouring weights lie apart.
template <typename T, bool kUnpack>
void move_output_lanes(const ConvShape& shape, std::conditional_t<kUnpack, T, const T>* w, std::conditional_t<kUnpack, const T, T>* rows,
                       int64_t width, int64_t used) {
  const int64_t taps = shape.windows.taps(), columns = shape.in_channels * taps;
  alignas(64) T tile[kLanes * kLanes];
  for (int64_t lane = 0; lane < used; lane += kLanes)
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t lanes = std::min<int64_t>(kLanes, used - lane), count = std::min<int64_t>(kLanes, columns - j);
      auto* own = w + lane * columns + j;
      if constexpr (!kUnpack) transpose_tile(own, columns, lanes, count, tile, kLanes);
      for (int64_t i = 0, tap = j % taps, channel = j / taps; i < count; ++i) {
        auto* row = rows + (tap * shape.in_channels + channel) * width + lane;
        if constexpr (kUnpack)
          Vec<T>::load(row).store(tile + i * kLanes);
        else
          Vec<T>::load(tile + i * kLanes).store(row);
        if (++tap == taps) tap = 0, ++channel;
      }
      if constexpr (kUnpack) transpose_tile(tile, kLanes, count, lanes, own, columns);
    }
}

// Backward: lanes are input channels, `taps` weights apart; rows run over the group's output channels.
template <typename T>
void pack_input_lanes(const ConvShape& shape, const T* w, T* rows, int64_t width, int64_t used) {
  const int64_t taps = shape.windows.taps(), ld = shape.out_channels * width;
  for (int64_t m = 0; m < shape.out_channels; ++m)
    transpose_tile(w + m * shape.in_channels * taps, taps, used, taps, rows + (taps - 1) * ld + m * width, -ld);
}

}  // namespace

template <typename T>
void pack_weights(const ConvShape& shape, const ConvPass& pass, const T* w, T* packed, int threads) {
  const LaneBlocks<T> blocks(shape.groups, pass.to_channels);
  const int64_t taps = shape.windows.taps(), rows = taps * pass.from_channels, columns = shape.in_channels * taps;
  parallel_for(threads, blocks.total(), [&](int64_t block) {
    const int64_t width = blocks.width(block), used = blocks.used(block);
    const T* group = w + blocks.group(block) * shape.out_channels * columns;
    T* to = packed + blocks.offset(block, rows);
    if (pass.backward)
      pack_input_lanes(shape, group + blocks.first(block) * taps, to, width, used);
    else
      move_output_lanes<T, false>(shape, group + blocks.first(block) * columns, to, width, used);
    if (used < width) zero(to + used, width, rows, width - used);
  });
}

template <typename T>
void unpack_weights(const ConvShape& shape, const ConvPass& pass, const T* packed, T* w, int threads) {
  const LaneBlocks<T> blocks(shape.groups, pass.to_channels);
  const int64_t columns = shape.in_channels * shape.windows.taps();
  parallel_for(threads, blocks.total(), [&](int64_t block) {
    T* to = w + (blocks.group(block) * shape.out_channels + blocks.first(block)) * columns;
    move_output_lanes<T, true>(shape, to, packed + blocks.offset(block, columns), blocks.width(block), blocks.used(block));
  });
}

#define ZP_CONV_LAYOUT(T)                                                                                       \
  template void gather_operand<T>(const ConvShape&, const ConvPass&, const Chunk&, const Operand<T>&, T*, int); \
  template void planes_to_blocks<T>(const LaneBlocks<T>&, const Chunk&, const Planes<const T>&, T*, int);       \
  template void blocks_to_planes<T>(const LaneBlocks<T>&, const Chunk&, const T*, const Planes<T>&, int);       \
  template void pack_weights<T>(const ConvShape&, const ConvPass&, const T*, T*, int);                          \
  template void unpack_weights<T>(const ConvShape&, const ConvPass&, const T*, T*, int);
ZP_CONV_LAYOUT(float)
ZP_CONV_LAYOUT(double)
#undef ZP_CONV_LAYOUT

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
