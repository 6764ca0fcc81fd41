#pragma once
// Scratch bytes of the CUDA kernels that sort row indices: a stable radix sort by digits of eight bits.
#include <bit>
#include <cstdint>

#include "graph/ops/workspace.h"

namespace zeroplan {

inline constexpr int64_t kSortDigits = 256;  // values of a digit
inline constexpr int64_t kSortTile = 2048;   // entries that a block places

// `entries` indices, each a row below `rows` or, where it is wrong, `rows` itself.
struct IndexSortSizes {
  int64_t entries = 0, rows = 0;
  int64_t tiles() const { return (entries + kSortTile - 1) / kSortTile; }
  int passes() const { return (std::bit_width(static_cast<uint64_t>(rows)) + 7) / 8; }
  int64_t list_bytes() const { return workspace_round(entries * 8); }
};

// Rows and positions, each twice, and how often each digit occurs in each tile.
inline int64_t cuda_index_sort_workspace(const IndexSortSizes& s) {
  return s.entries == 0 ? 0 : 4 * s.list_bytes() + workspace_round(s.tiles() * kSortDigits * 8);
}

}  // namespace zeroplan
