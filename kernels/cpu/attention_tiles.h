#pragma once
// What attention and its gradient share: heads as matrices, and tiles of transposed scores [keys, queries], in which the running
// maximum and sum of a query are lanes, not horizontal folds.
#include <algorithm>

#include "graph/ops/workspace.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

inline constexpr int64_t kTile = kAttentionTile;

// [rows, D] of one head; rows are `ld` elements apart.
template <typename T>
struct HeadMatrix {
  T* data;
  int64_t ld;
  T* row(int64_t i) const { return data + i * ld; }
};
template <typename T>
void clear_rows(HeadMatrix<T> x, int64_t first, int64_t rows, int64_t depth) {
  for (int64_t i = first; i < first + rows; ++i) std::fill_n(x.row(i), depth, T(0));
}
template <typename T>
inline HeadMatrix<T> head_of(const TensorView& x, int64_t batch, int64_t head) {
  return {static_cast<T*>(x.data) + batch * x.strides[0] + head * x.strides[1], x.strides[2]};
}

struct AttentionShape {
  int64_t batch, heads, kv_heads, queries, keys, depth;
  double scale;
  bool causal;
  AttentionShape(const TensorView& q, const TensorView& k, const Attributes& attributes)
      : batch(q.dims[0]),
        heads(q.dims[1]),
        kv_heads(k.dims[1]),
        queries(q.dims[2]),
        keys(k.dims[2]),
        depth(q.dims[3]),
        scale(attributes.get_double(Attr::scale)),
        causal(attributes.get_int(Attr::causal, 0) != 0) {}
  int64_t group() const { return heads / kv_heads; }
  // Key j is seen by query i iff j <= i + S - T.
  int64_t visible_keys(int64_t query_end) const { return causal ? std::clamp<int64_t>(query_end + keys - queries, 0, keys) : keys; }
};

// The additive mask of one head: element (query, key) at data[query·query_stride + key·key_stride]; data null: none.
template <typename T>
struct HeadMask {
  const T* data = nullptr;
  int64_t query_stride = 0, key_stride = 0;
};
template <typename T>
inline HeadMask<T> mask_of(const KernelArgs& args, int input, int64_t batch, int64_t head) {
  if (args.input_count <= input || args.inputs[input].data == nullptr) return {};
  const TensorView& m = args.inputs[input];
  const auto stride = [&](int axis) -> int64_t {  // of the four axes, aligned at the last
    const int own = axis - (4 - m.rank);
    return own < 0 || m.dims[own] == 1 ? 0 : m.strides[own];
  };
  return {static_cast<const T*>(m.data) + batch * stride(0) + head * stride(1), stride(2), stride(3)};
}

// to[d][i] = factor · x[first + i][d] for kTile columns, zero from `count` on.
template <typename T>
void pack_transposed(HeadMatrix<const T> x, int64_t first, int64_t count, int64_t depth, T factor, T* to) {
  if (count < kTile) std::fill_n(to, depth * kTile, T(0));
  const T* from = x.row(first);
  for (int64_t d0 = 0; d0 < depth; d0 += kLanes) {
    const int64_t d1 = std::min(depth, d0 + kLanes);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = d0; d < d1; ++d) to[d * kTile + i] = factor * from[i * x.ld + d];
    }
  }
}

// One tile: queries [q0, q0 + nq), keys [k0, k0 + nk).
struct TileRange {
  int64_t q0, nq, k0, nk;
};

// s[key][query] = k · (scale q)ᵀ + mask, -inf where hidden; packed: scale·qᵀ as pack_transposed makes it.
template <typename T>
void score_tile(const AttentionShape& shape, const TileRange& r, HeadMatrix<const T> k, const T* packed, const HeadMask<T>& mask, T* s) {
  tile_product<T>({k.row(r.k0), k.ld, 1, packed, kTile, s, kTile}, r.nk, kTile, shape.depth, false);
  if (mask.data) {
    for (int64_t j = 0; j < r.nk; ++j) {
      const T* from = mask.data + r.q0 * mask.query_stride + (r.k0 + j) * mask.key_stride;
      for (int64_t i = 0; i < r.nq; ++i) s[j * kTile + i] += from[i * mask.query_stride];
    }
  }
  if (!shape.causal) return;
  const int64_t shift = shape.keys - shape.queries;
  for (int64_t j = 0; j < r.nk; ++j) {
    const int64_t hidden = std::clamp<int64_t>(r.k0 + j - shift - r.q0, 0, kTile);  // queries before this one do not see the key
    std::fill_n(s + j * kTile, hidden, static_cast<T>(-__builtin_inf()));
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
