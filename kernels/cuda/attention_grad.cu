// attention_grad by tiles (Dao et al., FlashAttention): p is rebuilt from lse, ds = p · (dy vᵀ - Σ dy·y) · scale. One kernel goes over the
// keys of each query for dq, one over the queries of each key for dk and dv: twice the scores, and every sum in one order, without atomics.
#include "graph/ops/workspace.h"
#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/math.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// dy, q, y, dq [B, H, T, D]; k, v, dk, dv [B, Hk, S, D]; lse, delta [B, H, T]
template <typename W>
struct Backward {
  Heads dy, q, k, v, y;
  Heads dq, dk, dv;
  const W* lse;
  W* delta;  // Σ dy·y
  Scores<W> scores;
  int64_t heads, group;  // H, and how many of them share a head of k and v
};

// One head of q and what belongs to it.
template <typename W>
struct Head {
  HeadMatrix dy, q, k, v;
  const W *lse, *delta;  // [T]
  Scores<W> scores;
  __device__ Head(const Backward<W>& b, int64_t batch, int64_t head)
      : dy(b.dy.at(batch, head)),
        q(b.q.at(batch, head)),
        k(b.k.at(batch, head / b.group)),
        v(b.v.at(batch, head / b.group)),
        lse(b.lse + (batch * b.heads + head) * b.q.first.rows),
        delta(b.delta + (batch * b.heads + head) * b.q.first.rows),
        scores(b.scores.of_head(batch, head)) {}

  // score = q·k and slope = dy·v become p and ds.
  __device__ void finish(W& score, W& slope, int64_t query, int64_t key) const {
    const bool inside = query < scores.queries && key < scores.keys;
    const W from = inside ? lse[query] : W(0), shift = from == -static_cast<W>(INFINITY) ? W(0) : from;  // -∞: the query sees no key
    score = exponential(scores.at(score, query, key) - shift);
    slope = inside ? score * (slope - delta[query]) * scores.scale : W(0);
  }
};

// A warp for each row of y.
template <typename W>
__global__ void row_deltas(int64_t rows, Backward<W> b) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int64_t query = row % b.q.first.rows, head = row / b.q.first.rows;
  const HeadMatrix dy = b.dy.at(head / b.heads, head % b.heads), y = b.y.at(head / b.heads, head % b.heads);
  W sum = 0;
  for (int64_t d = threadIdx.x % kWarp * kQuad; d < dy.depth; d += kWarp * kQuad) {
    const Quad<W> of_dy = load_quad<W>(dy, query, d), of_y = load_quad<W>(y, query, d);
    for (int k = 0; k < kQuad; ++k) sum += of_dy.at[k] * of_y.at[k];
  }
  for (int half = kWarp / 2; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
  if (threadIdx.x % kWarp == 0) b.delta[row] = sum;
}

template <int kWidth, typename W>
__device__ void store_columns(const HeadMatrix& to, const TileItem& item, const W (&sums)[kTileRows][kWidth / 16]) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r)
#pragma unroll
    for (int group = 0; group < kWidth / kTile; ++group)
      store_quad(to, item.first + tile_y() * kTileRows + r, item.slice * kWidth + group * kTile + tile_x() * kQuad,
                 sums[r] + group * kQuad);
}

__device__ inline int part_of_tile(int64_t first, int64_t end) { return static_cast<int>(end - first < kTile ? end - first : kTile); }

// dq = ds k: a block for 64 queries and kWidth columns.
template <typename W, int kWidth>
__global__ void __launch_bounds__(kTileThreads) query_gradients(TileGrid grid, Backward<W> b) {
  ZP_DYNAMIC_SHARED(W, chunks);
  W* tile = chunks + 2 * kChunk<W> * kTile;
  const TileItem item = grid.item(blockIdx.x, kTile);
  const Head<W> head(b, item.batch, item.head);
  const int64_t end = item.first + part_of_tile(item.first, b.q.first.rows), keys = head.scores.keys_seen(end);
  W dq[kTileRows][kWidth / 16] = {};
  for (int64_t key = 0; key < keys; key += kTile) {
    W p[kTileRows][kTileColumns], ds[kTileRows][kTileColumns];
    multiply_rows(head.q, item.first, head.k, key, chunks, p);
    multiply_rows(head.dy, item.first, head.v, key, chunks, ds);
#pragma unroll
    for (int r = 0; r < kTileRows; ++r)
#pragma unroll
      for (int c = 0; c < kTileColumns; ++c)
        head.finish(p[r][c], ds[r][c], item.first + tile_y() * kTileRows + r, key + tile_x() * kTileColumns + c);
    keep_tile(ds, tile);
    add_tile_product<kWidth>(tile, head.k, key, part_of_tile(key, keys), item.slice * kWidth, chunks, dq);
  }
  store_columns<kWidth>(b.dq.at(item.batch, item.head), item, dq);
}

// dk = dsᵀ q and dv = pᵀ dy, over all heads of q that share the head: a block for 64 keys and 64 columns.
template <typename W>
__global__ void __launch_bounds__(kTileThreads) key_gradients(TileGrid grid, Backward<W> b) {
  ZP_DYNAMIC_SHARED(W, chunks);
  W* tile = chunks + 2 * kChunk<W> * kTile;
  const TileItem item = grid.item(blockIdx.x, kTile);
  W dk[kTileRows][kTileColumns] = {}, dv[kTileRows][kTileColumns] = {};
  for (int64_t of_group = 0; of_group < b.group; ++of_group) {
    const Head<W> head(b, item.batch, item.head * b.group + of_group);
    for (int64_t query = head.scores.first_query(item.first) / kTile * kTile; query < b.q.first.rows; query += kTile) {
      W p[kTileRows][kTileColumns], ds[kTileRows][kTileColumns];
      multiply_rows(head.k, item.first, head.q, query, chunks, p);
      multiply_rows(head.v, item.first, head.dy, query, chunks, ds);
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
#pragma unroll
        for (int c = 0; c < kTileColumns; ++c)
          head.finish(p[r][c], ds[r][c], query + tile_x() * kTileColumns + c, item.first + tile_y() * kTileRows + r);
      const int count = part_of_tile(query, b.q.first.rows);
      keep_tile(p, tile);
      add_tile_product<kTile>(tile, head.dy, query, count, item.slice * kTile, chunks, dv);
      keep_tile(ds, tile);
      add_tile_product<kTile>(tile, head.q, query, count, item.slice * kTile, chunks, dk);
    }
  }
  store_columns<kTile>(b.dk.at(item.batch, item.head), item, dk);
  store_columns<kTile>(b.dv.at(item.batch, item.head), item, dv);
}

template <typename W>
void launch_tiles(const KernelArgs& args, const TensorView& x, int width, void (*kernel)(TileGrid, Backward<W>), const Backward<W>& b) {
  const TileGrid grid = tile_grid(x, kTile, width);
  if (grid.blocks() > 0) launch(args, grid.blocks(), kTileThreads, kTileShared<W>, kernel, grid, b);
}

template <typename W>
void run_attention_grad(const KernelArgs& args) {
  const TensorView *in = args.inputs, *out = args.outputs;
  const Backward<W> b = {heads_of(in[0]),
                         heads_of(in[1]),
                         heads_of(in[2]),
                         heads_of(in[3]),
                         heads_of(in[4]),
                         heads_of(out[0]),
                         heads_of(out[1]),
                         heads_of(out[2]),
                         in[5].as<W>(),
                         static_cast<W*>(args.workspace),
                         scores_of<W>(in[1], in[2], *args.attributes, mask_of(in, args.input_count, 6)),
                         in[1].dims[1],
                         in[1].dims[1] / in[2].dims[1]};
  const int64_t rows = in[1].dims[0] * in[1].dims[1] * in[1].dims[2];
  constexpr int kRows = kBlock / kWarp;
  if (rows > 0) launch(args, static_cast<unsigned>((rows + kRows - 1) / kRows), kBlock, 0, row_deltas<W>, rows, b);
  constexpr int kWidest = sizeof(W) < sizeof(double) ? 2 * kTile : kTile;
  if (in[1].dims[3] > kTile)
    launch_tiles(args, out[0], kWidest, query_gradients<W, kWidest>, b);
  else
    launch_tiles(args, out[0], kTile, query_gradients<W, kTile>, b);
  launch_tiles(args, out[1], kTile, key_gradients<W>, b);
}

}  // namespace

// dy, q, k, v, y, lse, mask (optional) → dq, dk, dv
void attention_grad_kernel(const KernelArgs& args) {
  if (args.outputs[0].dtype == DType::f64) return run_attention_grad<double>(args);
  run_attention_grad<float>(args);
}

}  // namespace zeroplan::kernels_cuda
