#pragma once
// The score of a query and a key in attention, and which tile a block works on.
#include "graph/ir/graph.h"
#include "kernels/cuda/attention_heads.cuh"

namespace zeroplan::kernels_cuda {

// The additive mask, with strides over [B, H, T, S]; null: none.
struct Mask {
  const void* data = nullptr;
  DType dtype{};
  int64_t strides[4] = {};
};
inline Mask mask_of(const TensorView* inputs, int count, int input) {
  Mask mask;
  if (count <= input || inputs[input].data == nullptr) return mask;
  const TensorView& m = inputs[input];
  mask.data = m.data;
  mask.dtype = m.dtype;
  for (int own = 0; own < m.rank; ++own) mask.strides[4 - m.rank + own] = m.dims[own] == 1 ? 0 : m.strides[own];
  return mask;
}

// The scores of all heads; at(): of the one that of_head() gave.
template <typename W>
struct Scores {
  Mask mask;
  int64_t mask_start = 0;  // of the head
  int64_t queries = 0, keys = 0;
  W scale{};
  bool causal = false;

  __device__ Scores of_head(int64_t batch, int64_t head) const {
    Scores own = *this;
    own.mask_start = batch * mask.strides[0] + head * mask.strides[1];
    return own;
  }
  // Keys before this one are seen by some of the queries before query_end: key j by query i iff j <= i + S - T.
  __device__ int64_t keys_seen(int64_t query_end) const {
    const int64_t end = causal ? query_end + keys - queries : keys;
    return end < 0 ? 0 : end < keys ? end : keys;
  }
  // The first query that sees a key from this one on.
  __device__ int64_t first_query(int64_t key) const {
    const int64_t first = causal ? key - (keys - queries) : 0;
    return first < 0 ? 0 : first;
  }
  // scale · product + mask; -∞ where the query does not see the key, and outside.
  __device__ W at(W product, int64_t query, int64_t key) const {
    if (query >= queries || key >= keys || (causal && key > query + keys - queries)) return -static_cast<W>(INFINITY);
    const W score = product * scale;
    if (mask.data == nullptr) return score;
    const int64_t place = mask_start + query * mask.strides[2] + key * mask.strides[3];
    W added = 0;
    visit_stored_as<W>(mask.dtype, [&](auto zero) { added = widen(static_cast<const decltype(zero)*>(mask.data)[place]); });
    return score + added;
  }
};
template <typename W>
inline Scores<W> scores_of(const TensorView& q, const TensorView& k, const Attributes& attributes, const Mask& mask) {
  return {mask, 0, q.dims[2], k.dims[2], static_cast<W>(attributes.get_double(Attr::scale)), attributes.get_int(Attr::causal, 0) != 0};
}

// What a block of a grid works on: a slice of the columns of a tile of rows of a head.
struct TileItem {
  int64_t batch, head, first;
  int64_t slice;
};
// Tiles of `heads` heads, those of late rows first: where attention is causal they take longest.
struct TileGrid {
  int64_t batch, heads, tiles, slices;
  __device__ TileItem item(int64_t block, int tile_rows) const {
    TileItem item;
    item.slice = block % slices;
    block /= slices;
    item.head = block % heads;
    block /= heads;
    item.batch = block % batch;
    item.first = (tiles - 1 - block / batch) * tile_rows;
    return item;
  }
  unsigned blocks() const { return static_cast<unsigned>(batch * heads * tiles * slices); }
};
inline TileGrid tile_grid(const TensorView& x, int tile_rows, int slice_columns) {
  return {x.dims[0], x.dims[1], (x.dims[2] + tile_rows - 1) / tile_rows,
          std::max<int64_t>(1, (x.dims[3] + slice_columns - 1) / slice_columns)};
}

}  // namespace zeroplan::kernels_cuda
