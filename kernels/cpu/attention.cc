// attention: softmax(scale · q kᵀ + mask) v by tiles, with a running maximum and sum per query (Dao et al., FlashAttention;
// Milakov and Gimelshein, online softmax). The T × S scores never exist.
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// Scratch of one thread, as counted by attention_thread_bytes.
template <typename T>
struct Scratch {
  T* scores;   // [kTile keys, kTile queries]
  T* packed;   // [D, kTile]
  T* largest;  // [kTile] each
  T* sum;
  T* rescale;
  Scratch(const KernelArgs& args, int worker, int64_t depth) {
    scores = reinterpret_cast<T*>(static_cast<char*>(args.workspace) + worker * attention_thread_bytes(depth, sizeof(T)));
    packed = scores + kTile * kTile;
    largest = packed + kTile * depth;
    sum = largest + kTile;
    rescale = sum + kTile;
  }
};

// Scores become exp(score - maximum); the maximum and sum of each query move on, and rescale holds exp(old - new maximum).
template <typename T>
void softmax_step(Scratch<T>& w, int64_t keys) {
  const Vec<T> lowest(static_cast<T>(-__builtin_inf()));
  for (int64_t c = 0; c < kTile; c += kLanes) {
    const Vec<T> old = Vec<T>::load(w.largest + c);
    Vec<T> top = old;
    for (int64_t j = 0; j < keys; ++j) {
      const Vec<T> s = Vec<T>::load(w.scores + j * kTile + c);
      top = select(s > top, s, top);
    }
    const Vec<T> shift = select(top == lowest, Vec<T>(T(0)), top);  // no visible key yet: every score is -inf
    Vec<T> sum(T(0));
    for (int64_t j = 0; j < keys; ++j) {
      const Vec<T> p = exp(Vec<T>::load(w.scores + j * kTile + c) - shift);
      p.store(w.scores + j * kTile + c);
      sum += p;
    }
    const Vec<T> factor = exp(old - shift);
    factor.store(w.rescale + c);
    (Vec<T>::load(w.sum + c) * factor + sum).store(w.sum + c);
    top.store(w.largest + c);
  }
}

template <typename T>
void scale_rows(HeadMatrix<T> y, int64_t first, int64_t rows, int64_t depth, const T* factors) {
  for (int64_t i = 0; i < rows; ++i) {
    if (factors[i] == T(1)) continue;
    T* row = y.row(first + i);
    const Vec<T> f(factors[i]);
    for_lanes<T>(depth, [=](auto at) ZP_LAMBDA { at.store(row, at.load(row) * f); });
  }
}

template <typename T>
struct ForwardHead {
  HeadMatrix<const T> q, k, v;
  HeadMatrix<T> y;
  HeadMask<T> mask;
  T* lse;
};

template <typename T>
void forward_tile(const AttentionShape& shape, const ForwardHead<T>& head, Scratch<T>& w, int64_t q0) {
  const int64_t nq = std::min(kTile, shape.queries - q0), keys = shape.visible_keys(q0 + nq);
  pack_transposed(head.q, q0, nq, shape.depth, static_cast<T>(shape.scale), w.packed);
  std::fill_n(w.largest, kTile, static_cast<T>(-__builtin_inf()));
  std::fill_n(w.sum, kTile, T(0));
  if (keys == 0) clear_rows(head.y, q0, nq, shape.depth);
  for (int64_t k0 = 0; k0 < keys; k0 += kTile) {
    const TileRange range{q0, nq, k0, std::min(kTile, keys - k0)};
    score_tile(shape, range, head.k, w.packed, head.mask, w.scores);
    softmax_step(w, range.nk);
    if (k0 > 0) scale_rows(head.y, q0, nq, shape.depth, w.rescale);
    tile_product<T>({w.scores, 1, kTile, head.v.row(k0), head.v.ld, head.y.row(q0), head.y.ld}, nq, shape.depth, range.nk, k0 > 0);
  }
  for (int64_t i = 0; i < nq; ++i) {
    head.lse[q0 + i] = w.sum[i] == 0 ? static_cast<T>(-__builtin_inf()) : w.largest[i] + std::log(w.sum[i]);
    w.rescale[i] = w.sum[i] == 0 ? T(0) : T(1) / w.sum[i];
  }
  scale_rows(head.y, q0, nq, shape.depth, w.rescale);
}

template <typename T>
void run_attention(const KernelArgs& args) {
  const TensorView *in = args.inputs, &y = args.outputs[0], &lse = args.outputs[1];
  const AttentionShape shape(in[0], in[1], *args.attributes);
  const int64_t tiles = (shape.queries + kTile - 1) / kTile;
  parallel_for_workers(args.threads, shape.batch * shape.heads * tiles, [&](int worker, int64_t item) {
    const int64_t tile = item % tiles, h = item / tiles % shape.heads, b = item / tiles / shape.heads;
    Scratch<T> w(args, worker, shape.depth);
    const ForwardHead<T> head{head_of<const T>(in[0], b, h),
                              head_of<const T>(in[1], b, h / shape.group()),
                              head_of<const T>(in[2], b, h / shape.group()),
                              head_of<T>(y, b, h),
                              mask_of<T>(args, 3, b, h),
                              static_cast<T*>(lse.data) + b * lse.strides[0] + h * lse.strides[1]};
    forward_tile(shape, head, w, tile * kTile);
  });
}

}  // namespace

void attention_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_attention<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
