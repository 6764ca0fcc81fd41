#pragma once
// How the CUDA kernel of top_k works: pieces of each line are sorted, and cut to k; then lists are merged in pairs, and cut, until one is
// left.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "graph/ops/workspace.h"

namespace zeroplan {

inline constexpr int64_t kTopKPiece = 1024;  // elements that a block sorts

struct TopKLists {
  int64_t size = 0, k = 0;  // of a line
  int64_t pieces() const { return (size + kTopKPiece - 1) / kTopKPiece; }
  // Bytes of the lists of all lines: a place in the line (8 bytes) for each entry. Merging goes to and fro between two such buffers.
  int64_t bytes(int64_t lines) const {
    const int64_t entries = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pieces()))) * std::min(k, kTopKPiece);
    return workspace_round(lines * entries * 8);
  }
};

inline int64_t cuda_top_k_workspace(int64_t lines, const TopKLists& lists) {
  if (lists.size == 0 || lists.k == 0) return 0;
  return lists.bytes(lines) * (lists.pieces() > 1 ? 2 : 1);
}

}  // namespace zeroplan
