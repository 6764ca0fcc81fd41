#pragma once
// Operands of attention and its gradient: heads as matrices, read four columns at a time, and the score of a query and a key.
#include "base/tensor_view.h"
#include "graph/ir/graph.h"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

inline constexpr int kQuad = 4;

// [rows, depth] of one head; rows are `ld` elements apart.
template <typename T>
struct HeadMatrix {
  T* data;
  int64_t ld, rows, depth;
  bool quads;  // four neighbours of a row, from a multiple of four on, may be moved at once
};

// All heads of an operand [B, H, rows, D].
template <typename T>
struct Heads {
  T* data;
  int64_t batch_stride, head_stride, ld, rows, depth;
  bool quads;
  __device__ HeadMatrix<T> at(int64_t batch, int64_t head) const {
    return {data + batch * batch_stride + head * head_stride, ld, rows, depth, quads};
  }
};
template <typename T>
inline Heads<T> heads_of(const TensorView& x) {
  constexpr uintptr_t kBytes = sizeof(T) * kQuad > 16 ? 16 : sizeof(T) * kQuad;
  const bool quads = reinterpret_cast<uintptr_t>(x.data) % kBytes == 0 && x.strides[0] % kQuad == 0 && x.strides[1] % kQuad == 0 &&
                     x.strides[2] % kQuad == 0;
  return {x.as<T>(), x.strides[0], x.strides[1], x.strides[2], x.dims[2], x.dims[3], quads};
}

template <typename T>
struct alignas(sizeof(T) * kQuad > 16 ? 16 : sizeof(T) * kQuad) Quad {
  T at[kQuad];
};

// Elements [column, column + 4) of a row; zeros beyond the matrix.
template <typename T>
__device__ inline Quad<WideOf<T>> load_quad(const HeadMatrix<const T>& x, int64_t row, int64_t column) {
  Quad<WideOf<T>> quad = {};
  if (row >= x.rows) return quad;
  const T* from = x.data + row * x.ld + column;
  if (x.quads && column + kQuad <= x.depth) {
    const Quad<T> stored = *reinterpret_cast<const Quad<T>*>(from);
    for (int k = 0; k < kQuad; ++k) quad.at[k] = widen(stored.at[k]);
  } else {
    for (int k = 0; k < kQuad; ++k)
      if (column + k < x.depth) quad.at[k] = widen(from[k]);
  }
  return quad;
}
template <typename T>
__device__ inline void store_quad(const HeadMatrix<T>& x, int64_t row, int64_t column, const WideOf<T>* values) {
  if (row >= x.rows) return;
  T* to = x.data + row * x.ld + column;
  if (x.quads && column + kQuad <= x.depth) {
    Quad<T> stored;
    for (int k = 0; k < kQuad; ++k) stored.at[k] = narrow<T>(values[k]);
    *reinterpret_cast<Quad<T>*>(to) = stored;
  } else {
    for (int k = 0; k < kQuad; ++k)
      if (column + k < x.depth) to[k] = narrow<T>(values[k]);
  }
}

// The additive mask, with strides over [B, H, T, S]; null: none.
template <typename T>
struct Mask {
  const T* data = nullptr;
  int64_t strides[4] = {};
};
template <typename T>
inline Mask<T> mask_of(const TensorView* inputs, int count, int input) {
  Mask<T> mask;
  if (count <= input || inputs[input].data == nullptr) return mask;
  const TensorView& m = inputs[input];
  mask.data = m.as<T>();
  for (int own = 0; own < m.rank; ++own) mask.strides[4 - m.rank + own] = m.dims[own] == 1 ? 0 : m.strides[own];
  return mask;
}

// The scores of all heads; at(): of the one that of_head() gave.
template <typename T>
struct Scores {
  Mask<T> mask;
  int64_t queries = 0, keys = 0;
  WideOf<T> scale{};
  bool causal = false;

  __device__ Scores of_head(int64_t batch, int64_t head) const {
    Scores own = *this;
    if (mask.data != nullptr) own.mask.data += batch * mask.strides[0] + head * mask.strides[1];
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
  __device__ WideOf<T> at(WideOf<T> product, int64_t query, int64_t key) const {
    if (query >= queries || key >= keys || (causal && key > query + keys - queries)) return -static_cast<WideOf<T>>(INFINITY);
    const WideOf<T> score = product * scale;
    return mask.data != nullptr ? score + widen(mask.data[query * mask.strides[2] + key * mask.strides[3]]) : score;
  }
};
template <typename T>
inline Scores<T> scores_of(const TensorView& q, const TensorView& k, const Attributes& attributes, const Mask<T>& mask) {
  return {mask, q.dims[2], k.dims[2], static_cast<WideOf<T>>(attributes.get_double(Attr::scale)), attributes.get_int(Attr::causal, 0) != 0};
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
