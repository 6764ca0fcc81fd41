#pragma once
// What attention and attention_grad share: sizes, scores, and the checks of q, k, v and mask.
#include "graph/ops/op_def.h"

namespace zeroplan {

// q [B,H,T,D], k and v [B,Hk,S,D]; head h of q reads head h / (H / Hk) of k and v.
struct AttentionSizes {
  int64_t batch, heads, kv_heads, queries, keys, depth;
};
AttentionSizes attention_sizes(const Shape& q, const Shape& k);

// Checks q, k, v at inputs first … first + 2 and the optional mask at `mask`; throws Error.
AttentionSizes check_attention(const Graph& graph, const Node& node, int first, int mask);

// Scores of one query: scale·q·k + mask for every key, -inf where causal masking hides it (key j is seen by query i iff j ≤ i + S - T).
// A row without any visible key has largest = -inf.
std::vector<double> attention_scores(const Node& node, const HostTensor& q, const HostTensor& k, const HostTensor* mask, int64_t b,
                                     int64_t h, int64_t i);

double attention_flops(const Node& node, const AttentionSizes& sizes);

}  // namespace zeroplan
