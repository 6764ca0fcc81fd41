#pragma once
// What attention and its gradient share: products of tiles of kTile rows, held by a block of kTileThreads threads in registers.
// Thread (tx, ty) of 16 × 8 holds rows ty·8 … +7 and columns tx·4 … +3. Tiles in shared memory are swizzled in groups of four columns.
#include "kernels/cuda/attention_scores.cuh"
#include "kernels/cuda/launch.cuh"

namespace zeroplan::kernels_cuda {

inline constexpr int kTile = 64, kTileThreads = 128, kTileRows = 8, kTileColumns = 4;
// Depth of the chunks that products go through shared memory in: 128 bytes of the type that is computed in.
template <typename W>
inline constexpr int kChunk = static_cast<int>(128 / sizeof(W));
// Two chunks of kTile rows, and a tile.
template <typename W>
inline constexpr size_t kTileShared = (2 * kChunk<W> * kTile + kTile * kTile) * sizeof(W);

__device__ inline int tile_x() { return static_cast<int>(threadIdx.x) % 16; }
__device__ inline int tile_y() { return static_cast<int>(threadIdx.x) / 16; }
// Place of (row, column) in a shared tile: no two threads of a warp meet in a bank, whether they write rows or columns.
__device__ inline int swizzled(int row, int column) { return row * kTile + (column ^ ((row >> 2 & 15) << 2)); }

// to[d][row] for columns [d0, d0 + kChunk) of kTile rows
template <typename W>
__device__ inline void load_transposed(const HeadMatrix& x, int64_t first, int64_t d0, W* to) {
  constexpr int kQuads = kChunk<W> / kQuad;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kQuads; i += kTileThreads) {
    const int row = i / kQuads, d = i % kQuads * kQuad;
    const auto quad = load_quad<W>(x, first + row, d0 + d);
    for (int k = 0; k < kQuad; ++k) to[swizzled(d + k, row)] = quad.at[k];
  }
}

// sums += a[r]·b[c] over n positions, of which get_a(i, half) and get_b(i, group) give quads of rows and of columns.
template <int kGroups, typename W, typename A, typename B>
__device__ inline void outer_products(int n, const A& get_a, const B& get_b, W (&sums)[kTileRows][kGroups * kQuad]) {
#pragma unroll 4
  for (int i = 0; i < n; ++i) {
    const Quad<W> a[2] = {get_a(i, 0), get_a(i, 1)};
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const Quad<W> b = get_b(i, group);
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
#pragma unroll
        for (int c = 0; c < kQuad; ++c) sums[r][group * kQuad + c] += a[r / kQuad].at[r % kQuad] * b.at[c];
    }
  }
}
template <typename W>
__device__ inline Quad<W> quad_at(const W* shared) {
  return *reinterpret_cast<const Quad<W>*>(shared);
}

// products[r][c] = Σ_d a[a0 + r][d] · b[b0 + c][d], by way of two shared chunks
template <typename W>
__device__ inline void multiply_rows(const HeadMatrix& a, int64_t a0, const HeadMatrix& b, int64_t b0, W* chunks,
                                     W (&products)[kTileRows][kTileColumns]) {
  W *of_a = chunks, *of_b = chunks + kChunk<W> * kTile;
  for (auto& row : products)
    for (W& x : row) x = 0;
  for (int64_t d0 = 0; d0 < a.depth; d0 += kChunk<W>) {
    __syncthreads();  // what lay in the chunks has been read
    load_transposed(a, a0, d0, of_a);
    load_transposed(b, b0, d0, of_b);
    __syncthreads();
    outer_products<1>(
        kChunk<W>, [&](int d, int half) { return quad_at(of_a + swizzled(d, tile_y() * kTileRows + half * kQuad)); },
        [&](int d, int) { return quad_at(of_b + swizzled(d, tile_x() * kTileColumns)); }, products);
  }
}

// Leaves a block's products in shared memory as tile[column][row].
template <typename W>
__device__ inline void keep_tile(const W (&products)[kTileRows][kTileColumns], W* tile) {
  __syncthreads();  // what lay in the tile has been read
#pragma unroll
  for (int c = 0; c < kTileColumns; ++c)
    for (int half = 0; half < 2; ++half) {
      Quad<W> quad;
      for (int k = 0; k < kQuad; ++k) quad.at[k] = products[half * kQuad + k][c];
      *reinterpret_cast<Quad<W>*>(tile + swizzled(tile_x() * kTileColumns + c, tile_y() * kTileRows + half * kQuad)) = quad;
    }
}

// sums[r][c] += Σ_i tile[i][r] · x[x0 + i][c0 + c] over `count` rows of x; a thread holds columns tx·4 … +3 of each 64.
template <int kWidth, typename W>
__device__ inline void add_tile_product(const W* tile, const HeadMatrix& x, int64_t x0, int64_t count, int64_t c0, W* chunks,
                                        W (&sums)[kTileRows][kWidth / 16]) {
  constexpr int kInner = 2 * kChunk<W> * kTile / kWidth, kQuads = kWidth / kQuad;
  for (int first = 0; first < count; first += kInner) {
    __syncthreads();  // the tile is complete, and what lay in the chunks has been read
    for (int i = static_cast<int>(threadIdx.x); i < kInner * kQuads; i += kTileThreads) {
      const int row = i / kQuads, column = i % kQuads * kQuad;
      *reinterpret_cast<Quad<W>*>(chunks + row * kWidth + column) = load_quad<W>(x, x0 + first + row, c0 + column);
    }
    __syncthreads();
    outer_products<kWidth / kTile>(
        kInner, [&](int i, int half) { return quad_at(tile + swizzled(first + i, tile_y() * kTileRows + half * kQuad)); },
        [&](int i, int group) { return quad_at(chunks + i * kWidth + group * kTile + tile_x() * kQuad); }, sums);
  }
}

}  // namespace zeroplan::kernels_cuda
