// attention: softmax(scale · q kᵀ + mask) v by tiles of 64 queries and 64 keys, with a running maximum and sum per query (Dao et al.,
// FlashAttention; Milakov and Gimelshein, online softmax). The T × S scores never exist.
#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/math.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// q [B, H, T, D]; k, v [B, Hk, S, D]; y [B, H, T, D]; lse [B, H, T]
template <typename W>
struct Forward {
  Heads q, k, v;
  Heads y;
  W* lse;
  Scores<W> scores;
  int64_t heads, group;  // H, and how many of them share a head of k and v
};

// Of a thread's rows, which are the same in 16 threads: the largest score so far, and this thread's share of Σ exp(score - largest).
template <typename W>
struct RunningSoftmax {
  W largest[kTileRows], sum[kTileRows];
};

template <typename F, typename W>
__device__ W fold_columns(W value, const F& join) {
  for (int half = 8; half > 0; half /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, half, 16));
  return value;
}

// Scores become exp(score - largest); sums and results move on to the new largest score.
template <int kWidth, typename W>
__device__ void softmax_step(W (&scores)[kTileRows][kTileColumns], RunningSoftmax<W>& running, W (&y)[kTileRows][kWidth / 16]) {
  const W lowest = -static_cast<W>(INFINITY);
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    W top = running.largest[r];
    for (const W score : scores[r]) top = score > top ? score : top;
    top = fold_columns(top, [](W a, W b) { return a > b ? a : b; });
    const W shift = top == lowest ? W(0) : top;  // no key seen yet: every score is -∞
    const W rescale = exponential(running.largest[r] - shift);
    running.largest[r] = top;
    running.sum[r] *= rescale;
    for (W& score : scores[r]) {
      score = exponential(score - shift);
      running.sum[r] += score;
    }
    for (W& x : y[r]) x *= rescale;
  }
}

template <int kWidth, typename W>
__device__ void store_results(const Forward<W>& f, const TileItem& item, RunningSoftmax<W>& running, W (&y)[kTileRows][kWidth / 16]) {
  const HeadMatrix to = f.y.at(item.batch, item.head);
  W* lse = f.lse + (item.batch * f.heads + item.head) * f.y.first.rows;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int64_t query = item.first + tile_y() * kTileRows + r;
    const W sum = fold_columns(running.sum[r], [](W a, W b) { return a + b; });
    for (W& x : y[r]) x = sum == 0 ? W(0) : x / sum;
#pragma unroll
    for (int group = 0; group < kWidth / kTile; ++group)
      store_quad(to, query, item.slice * kWidth + group * kTile + tile_x() * kQuad, y[r] + group * kQuad);
    if (item.slice == 0 && tile_x() == 0 && query < f.scores.queries)
      lse[query] = sum == 0 ? -static_cast<W>(INFINITY) : running.largest[r] + logarithm(sum);
  }
}

// A block for 64 queries and kWidth columns of y.
template <typename W, int kWidth>
__global__ void __launch_bounds__(kTileThreads) attend(TileGrid grid, Forward<W> f) {
  ZP_DYNAMIC_SHARED(W, chunks);
  W* tile = chunks + 2 * kChunk<W> * kTile;
  const TileItem item = grid.item(blockIdx.x, kTile);
  const HeadMatrix q = f.q.at(item.batch, item.head), k = f.k.at(item.batch, item.head / f.group),
                   v = f.v.at(item.batch, item.head / f.group);
  const Scores<W> scores_of_head = f.scores.of_head(item.batch, item.head);
  RunningSoftmax<W> running;
  W y[kTileRows][kWidth / 16];
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    running.largest[r] = -static_cast<W>(INFINITY);
    running.sum[r] = 0;
    for (W& x : y[r]) x = 0;
  }
  const int64_t keys = f.scores.keys_seen(item.first + kTile < f.scores.queries ? item.first + kTile : f.scores.queries);
  for (int64_t key = 0; key < keys; key += kTile) {
    W scores[kTileRows][kTileColumns];
    multiply_rows(q, item.first, k, key, chunks, scores);
#pragma unroll
    for (int r = 0; r < kTileRows; ++r)
#pragma unroll
      for (int c = 0; c < kTileColumns; ++c)
        scores[r][c] = scores_of_head.at(scores[r][c], item.first + tile_y() * kTileRows + r, key + tile_x() * kTileColumns + c);
    softmax_step<kWidth>(scores, running, y);
    keep_tile(scores, tile);
    add_tile_product<kWidth>(tile, v, key, keys - key < kTile ? keys - key : kTile, item.slice * kWidth, chunks, y);
  }
  store_results<kWidth>(f, item, running, y);
}

template <typename W, int kWidth>
void run_width(const KernelArgs& args, const Forward<W>& f) {
  const TileGrid grid = tile_grid(args.outputs[0], kTile, kWidth);
  if (grid.blocks() > 0) launch(args, grid.blocks(), kTileThreads, kTileShared<W>, attend<W, kWidth>, grid, f);
}

template <typename W>
void run_attention(const KernelArgs& args) {
  const TensorView &q = args.inputs[0], &k = args.inputs[1];
  const Forward<W> f = {heads_of(q),
                        heads_of(k),
                        heads_of(args.inputs[2]),
                        heads_of(args.outputs[0]),
                        args.outputs[1].as<W>(),
                        scores_of<W>(q, k, *args.attributes, mask_of(args.inputs, args.input_count, 3)),
                        q.dims[1],
                        q.dims[1] / k.dims[1]};
  constexpr int kWidest = sizeof(W) < sizeof(double) ? 2 * kTile : kTile;
  if (q.dims[3] > kTile) return run_width<W, kWidest>(args, f);
  run_width<W, kTile>(args, f);
}

}  // namespace

// q, k, v, mask (optional) → y, lse
void attention_kernel(const KernelArgs& args) {
  if (args.outputs[0].dtype == DType::f64) return run_attention<double>(args);
  run_attention<float>(args);
}

}  // namespace zeroplan::kernels_cuda
