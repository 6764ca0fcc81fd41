#pragma once
// How the CUDA kernels of reductions share out the elements of each result: a function of the shape alone, so that every device gives the
// same bits.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "graph/ops/workspace.h"

namespace zeroplan {

inline constexpr int64_t kReduceThreads = 256;      // of a block
inline constexpr int64_t kReduceLaneElements = 16;  // from this many elements on, a result gets one more thread
inline constexpr int64_t kReduceChunkRun = 32;      // least elements of one thread in a chunk
inline constexpr int64_t kReduceBlocks = 1024;      // enough for every device; more results or chunks are not cut further
inline constexpr int64_t kReduceAlignment = 64;     // elements; chunks start at multiples of it
inline constexpr int64_t kReduceNeighbours = 32;    // results side by side that a warp reads as one

struct ReduceChunks {
  int64_t lanes = 1;   // threads of a block per result, a power of two
  int64_t chunk = 0;   // elements
  int64_t chunks = 1;  // per result; where there are several, their results are reduced once more
};

// `kept` results of `reduced` elements each. across: neighbouring results lie side by side in memory, not the elements of one.
inline ReduceChunks reduce_chunks(int64_t kept, int64_t reduced, bool across) {
  const auto power = [](int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(x, 1)))); };
  const int64_t most = across ? kReduceThreads / std::min(kReduceNeighbours, power(kept)) : kReduceThreads;
  ReduceChunks c;
  c.lanes = std::min(most, power((reduced + kReduceLaneElements - 1) / kReduceLaneElements));
  const int64_t results = kReduceThreads / c.lanes, blocks = std::max<int64_t>(1, (kept + results - 1) / results);
  c.chunks = std::clamp<int64_t>(reduced / (c.lanes * kReduceChunkRun), 1, std::max<int64_t>(1, kReduceBlocks / blocks));
  c.chunk = (reduced + c.chunks - 1) / c.chunks;
  if (c.chunks > 1) {
    c.chunk = (c.chunk + kReduceAlignment - 1) / kReduceAlignment * kReduceAlignment;
    c.chunks = (reduced + c.chunk - 1) / c.chunk;
  }
  return c;
}

// One number of 8 bytes per result and chunk, [chunks, kept], whichever way the operand lies.
inline int64_t cuda_reduce_workspace(int64_t kept, int64_t reduced) {
  int64_t bytes = 0;
  for (const bool across : {false, true}) {
    const ReduceChunks c = reduce_chunks(kept, reduced, across);
    if (c.chunks > 1) bytes = std::max(bytes, workspace_round(c.chunks * kept * 8));
  }
  return bytes;
}

}  // namespace zeroplan
