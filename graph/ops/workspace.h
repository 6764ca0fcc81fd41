#pragma once
// Tile sizes and scratch bytes of the kernels that ask for workspace; kernels carve up exactly what is counted here.
#include <algorithm>
#include <cstdint>

namespace zeroplan {

inline constexpr int64_t kWorkspaceAlignment = 128;  // bytes, of every part
inline constexpr int64_t kAttentionTile = 64;        // queries and keys per tile
inline constexpr int64_t kNormGradChunks = 16;       // rows are cut into this many fixed chunks, whatever the number of threads

inline int64_t workspace_round(int64_t bytes) { return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment; }

// attention: per thread one tile of scores, one of outputs and four numbers per query. `depth` is D, `bytes` those of an element.
inline int64_t attention_thread_bytes(int64_t depth, int64_t bytes) {
  return workspace_round((kAttentionTile * kAttentionTile + kAttentionTile * depth + 4 * kAttentionTile) * bytes);
}
inline int64_t attention_workspace(int64_t threads, int64_t depth, int64_t bytes) { return threads * attention_thread_bytes(depth, bytes); }

// attention_grad: the row sums Σ dy·y of all B·H·T queries first, then per thread three tiles of scores, four of depth and four numbers per
// query.
inline int64_t attention_grad_delta_bytes(int64_t queries, int64_t bytes) { return workspace_round(queries * bytes); }
inline int64_t attention_grad_thread_bytes(int64_t depth, int64_t bytes) {
  return workspace_round((3 * kAttentionTile * kAttentionTile + 4 * kAttentionTile + 4 * kAttentionTile * depth) * bytes);
}
inline int64_t attention_grad_workspace(int64_t threads, int64_t queries, int64_t depth, int64_t bytes) {
  return attention_grad_delta_bytes(queries, bytes) + threads * attention_grad_thread_bytes(depth, bytes);
}

// layer_norm_grad, rms_norm_grad: partial sums of dgamma and dbeta per chunk, [chunks, 2, C] in double.
inline int64_t norm_grad_workspace(int64_t columns) {
  return workspace_round(kNormGradChunks * 2 * columns * static_cast<int64_t>(sizeof(double)));
}
// First row of chunk `chunk`; chunk kNormGradChunks ends at `rows`.
inline int64_t norm_grad_chunk_start(int64_t chunk, int64_t rows) {
  return std::min(rows, chunk * ((rows + kNormGradChunks - 1) / kNormGradChunks));
}

// cross_entropy: one loss per row, in double, so that the sum is folded in row order.
inline int64_t cross_entropy_workspace(int64_t rows) { return workspace_round(rows * static_cast<int64_t>(sizeof(double))); }

// top_k: per thread the numbers of the elements of one line.
inline int64_t top_k_thread_bytes(int64_t size) { return workspace_round(size * static_cast<int64_t>(sizeof(int64_t))); }

}  // namespace zeroplan
