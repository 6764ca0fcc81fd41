// attention_grad by tiles (Dao et al., FlashAttention): p is rebuilt from lse, ds = p · (dy vᵀ - Σ dy·y).
// One thread owns a head of k and v, so that every sum has one order.
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// Scratch of one thread, within attention_grad_thread_bytes.
template <typename T>
struct Scratch {
  T* p;          // [kTile keys, kTile queries]: scores, then probabilities
  T* ds;         // the same shape: dy vᵀ, then ds
  T* packed_q;   // [D, kTile], times scale
  T* packed_dy;  // [D, kTile]
  T* delta;      // [kTile] Σ dy·y
  T* lse;        // [kTile]
  Scratch(const KernelArgs& args, int worker, const AttentionShape& s) {
    const int64_t shared = attention_grad_delta_bytes(s.batch * s.heads * s.queries, sizeof(T));
    p = reinterpret_cast<T*>(static_cast<char*>(args.workspace) + shared + worker * attention_grad_thread_bytes(s.depth, sizeof(T)));
    ds = p + kTile * kTile;
    packed_q = ds + kTile * kTile;
    packed_dy = packed_q + kTile * s.depth;
    delta = packed_dy + kTile * s.depth;
    lse = delta + kTile;
  }
};

template <typename T>
struct BackwardHead {
  HeadMatrix<const T> dy, q, k, v, y;
  HeadMatrix<T> dq, dk, dv;
  HeadMask<T> mask;
  const T* lse;
};

// p = exp(score - lse); ds = p · (dp - delta) · scale.
template <typename T>
void softmax_gradient(Scratch<T>& w, int64_t keys, T scale) {
  for (int64_t c = 0; c < kTile; c += kLanes) {
    const Vec<T> lse = Vec<T>::load(w.lse + c), delta = Vec<T>::load(w.delta + c);
    for (int64_t j = 0; j < keys; ++j) {
      const Vec<T> p = exp(Vec<T>::load(w.p + j * kTile + c) - lse);
      p.store(w.p + j * kTile + c);
      (p * (Vec<T>::load(w.ds + j * kTile + c) - delta) * Vec<T>(scale)).store(w.ds + j * kTile + c);
    }
  }
}

template <typename T>
void load_queries(const AttentionShape& shape, const BackwardHead<T>& head, Scratch<T>& w, int64_t q0, int64_t nq) {
  pack_transposed(head.q, q0, nq, shape.depth, static_cast<T>(shape.scale), w.packed_q);
  pack_transposed(head.dy, q0, nq, shape.depth, T(1), w.packed_dy);
  std::fill_n(w.delta, kTile, T(0));
  std::fill_n(w.lse, kTile, T(0));
  for (int64_t i = 0; i < nq; ++i) {
    const T *dy = head.dy.row(q0 + i), *y = head.y.row(q0 + i);
    w.delta[i] = sum_over<T>(shape.depth, [=](auto at) ZP_LAMBDA { return at.load(dy) * at.load(y); });
    const T lse = head.lse[q0 + i];
    w.lse[i] = lse == -__builtin_inf() ? T(0) : lse;  // no visible key: every score is -inf and p becomes 0
  }
}

template <typename T>
void backward_tile(const AttentionShape& shape, const BackwardHead<T>& head, Scratch<T>& w, int64_t q0) {
  const int64_t nq = std::min(kTile, shape.queries - q0), keys = shape.visible_keys(q0 + nq), depth = shape.depth;
  load_queries(shape, head, w, q0, nq);
  if (keys == 0) clear_rows(head.dq, q0, nq, depth);
  for (int64_t k0 = 0; k0 < keys; k0 += kTile) {
    const TileRange range{q0, nq, k0, std::min(kTile, keys - k0)};
    score_tile(shape, range, head.k, w.packed_q, head.mask, w.p);
    tile_product<T>({head.v.row(k0), head.v.ld, 1, w.packed_dy, kTile, w.ds, kTile}, range.nk, kTile, depth, false);
    softmax_gradient(w, range.nk, static_cast<T>(shape.scale));
    tile_product<T>({w.p, kTile, 1, head.dy.row(q0), head.dy.ld, head.dv.row(k0), head.dv.ld}, range.nk, depth, nq, true);
    tile_product<T>({w.ds, kTile, 1, head.q.row(q0), head.q.ld, head.dk.row(k0), head.dk.ld}, range.nk, depth, nq, true);
    tile_product<T>({w.ds, 1, kTile, head.k.row(k0), head.k.ld, head.dq.row(q0), head.dq.ld}, nq, depth, range.nk, k0 > 0);
  }
}

template <typename T>
void run_attention_grad(const KernelArgs& args) {
  const TensorView *in = args.inputs, *out = args.outputs;
  const AttentionShape shape(in[1], in[2], *args.attributes);
  parallel_for_workers(args.threads, shape.batch * shape.kv_heads, [&](int worker, int64_t item) {
    const int64_t b = item / shape.kv_heads, kv = item % shape.kv_heads;
    Scratch<T> w(args, worker, shape);
    const HeadMatrix<T> dk = head_of<T>(out[1], b, kv), dv = head_of<T>(out[2], b, kv);
    clear_rows(dk, 0, shape.keys, shape.depth);
    clear_rows(dv, 0, shape.keys, shape.depth);
    for (int64_t h = kv * shape.group(); h < (kv + 1) * shape.group(); ++h) {
      const BackwardHead<T> head{head_of<const T>(in[0], b, h),
                                 head_of<const T>(in[1], b, h),
                                 head_of<const T>(in[2], b, kv),
                                 head_of<const T>(in[3], b, kv),
                                 head_of<const T>(in[4], b, h),
                                 head_of<T>(out[0], b, h),
                                 dk,
                                 dv,
                                 mask_of<T>(args, 6, b, h),
                                 static_cast<const T*>(in[5].data) + (b * shape.heads + h) * shape.queries};
      for (int64_t q0 = 0; q0 < shape.queries; q0 += kTile) backward_tile(shape, head, w, q0);
    }
  });
}

}  // namespace

void attention_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_attention_grad<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
