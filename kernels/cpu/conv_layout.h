#pragma once
// The forms in which convolutions hold their tensors: the part of an operand that a chunk reads, weights by blocks of lanes, results by
// blocks of lanes.
#include <algorithm>

#include "graph/ops/conv_shape.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/transpose_tile.h"
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

inline int64_t ceil_to(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t floor_to(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Channels of a result in blocks that the registers hold: blocks of `kWidth` lanes, the last of each group maybe narrower.
template <typename T>
struct LaneBlocks {
  static constexpr int64_t kWidth = MicroTile<T>::kVectors * kLanes;
  int64_t groups, channels, padded, count;  // channels, padded: of one group; count: blocks per group
  LaneBlocks(int64_t groups, int64_t channels)
      : groups(groups), channels(channels), padded(padded_channels(channels)), count(ceil_to(padded, kWidth)) {}
  int64_t total() const { return groups * count; }
  int64_t group(int64_t block) const { return block / count; }
  int64_t first(int64_t block) const { return block % count * kWidth; }  // channel within the group
  int64_t width(int64_t block) const { return std::min(kWidth, padded - first(block)); }
  int64_t used(int64_t block) const { return std::min(width(block), channels - first(block)); }
  // Where the block's `rows` rows of width(block) lanes start.
  int64_t offset(int64_t block, int64_t rows) const { return rows * (group(block) * padded + first(block)); }
};

// What one chunk covers.
struct Chunk {
  int64_t image, images;  // first and number
  int64_t row, rows;      // along the first spatial axis of the result
};
Chunk chunk_at(const ConvShape& shape, const ConvPass& pass, int64_t index);
// Element of the operand that the buffer's first one stands for, along an axis.
int64_t buffer_origin(const ConvPass& pass, const WindowAxis& axis, int64_t first_result);

// A tensor [N, groups·channels, …] into the buffer [images, span, groups·channels], zero where the tensor has no element.
template <typename T>
struct Operand {
  const T* data;
  int64_t channels;   // of all groups
  int64_t extent[3];  // spatial
};
template <typename T>
void gather_operand(const ConvShape& shape, const ConvPass& pass, const Chunk& chunk, const Operand<T>& from, T* buffer, int threads);

// Planes [N, groups·channels, points] of a chunk into blocks [block][point][lanes] and back; `first` and `points`: the chunk's part of a
// plane.
template <typename T>
struct Planes {
  T* data;
  int64_t plane;  // points of a plane
  int64_t first, points;
};
template <typename T>
void planes_to_blocks(const LaneBlocks<T>& blocks, const Chunk& chunk, const Planes<const T>& from, T* to, int threads);
template <typename T>
void blocks_to_planes(const LaneBlocks<T>& blocks, const Chunk& chunk, const T* from, const Planes<T>& to, int threads);

// Weights [M, C/groups, taps] as rows of lanes [block][tap, channel of the operand][lanes]; backward: taps in reverse order.
template <typename T>
void pack_weights(const ConvShape& shape, const ConvPass& pass, const T* w, T* packed, int threads);
// Back from the rows of a forward pass.
template <typename T>
void unpack_weights(const ConvShape& shape, const ConvPass& pass, const T* packed, T* w, int threads);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
