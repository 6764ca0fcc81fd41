#pragma once
// How the CUDA kernels of batch_norm share out the elements of each channel: a function of the shape alone.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "graph/ops/workspace.h"

namespace zeroplan {

inline constexpr int64_t kChannelThreads = 256;    // of a block
inline constexpr int64_t kChannelItems = 16;       // elements of a thread in a chunk
inline constexpr int64_t kChannelNeighbours = 32;  // channels side by side that a warp reads as one, where planes are single elements

struct ChannelChunks {
  int64_t lanes = 1;   // threads of a block per channel, a power of two
  int64_t chunks = 1;  // per channel
  int64_t chunk() const { return lanes * kChannelItems; }
};

// x [batch, channels, plane]
inline ChannelChunks channel_chunks(int64_t batch, int64_t channels, int64_t plane) {
  const auto power = [](int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x))); };
  const int64_t count = batch * plane;
  const int64_t most = plane > 1 ? kChannelThreads : kChannelThreads / std::min(kChannelNeighbours, power(channels));
  ChannelChunks c;
  c.lanes = std::min(most, power((count + kChannelItems - 1) / kChannelItems));
  c.chunks = (count + c.chunk() - 1) / c.chunk();
  return c;
}

// Two numbers in double per chunk and channel, then three per channel.
inline int64_t cuda_batch_norm_partial_bytes(int64_t channels, int64_t chunks) { return workspace_round(2 * chunks * channels * 8); }
inline int64_t cuda_batch_norm_workspace(int64_t batch, int64_t channels, int64_t plane) {
  return cuda_batch_norm_partial_bytes(channels, channel_chunks(batch, channels, plane).chunks) + workspace_round(3 * channels * 8);
}

}  // namespace zeroplan
