#pragma once
// What an Attention node adds to its scores: its mask, the causal frontier, the window, and what hides padding.
#include <optional>

#include "graph/onnx/terms.h"

namespace zeroplan {

struct BiasSizes {
  int64_t batch = 0, queries = 0, keys = 0;
  int64_t offset = 0;  // keys before the first query; nonpad_kv_seqlen, where the node has it, counts instead
};

// Broadcasts to [B,H,T,S]; none where every query sees every key.
std::optional<Term> attention_bias(DecodeContext& c, const BiasSizes& sizes, DType dtype, bool causal);

}  // namespace zeroplan
