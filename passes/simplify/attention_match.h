#pragma once
// Recognises softmax(q kᵀ·scale + mask) v behind a matmul.
#include <optional>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// A view on `base`: its axes permuted.
struct PermutedValue {
  ValueId base = kNone;
  std::vector<int64_t> permutation;
};

struct AttentionMatch {
  PermutedValue q, k;    // [.., T, D], [.., S, D]; scales taken off
  ValueId v = kNone;     // [.., S, D]
  ValueId mask = kNone;  // additive, not scaled; kNone where causal or without effect
  double scale = 1;
  bool causal = false;
  NodeId probabilities = kNone;  // the softmax node
};

class AttentionMatcher {
 public:
  explicit AttentionMatcher(const Graph& graph);
  // The form that ends in matmul node `id`; ranks 3 and 4.
  std::optional<AttentionMatch> match(NodeId id) const;

 private:
  bool take_scores(ValueId scores, AttentionMatch& match) const;
  bool take_mask(const Node& node, ValueId& scores, AttentionMatch& match) const;
  bool take_where(const Node& node, ValueId& scores, AttentionMatch& match) const;
  bool add_mask(ValueId mask, AttentionMatch& match, int64_t rows, int64_t columns) const;
  bool take_scale(ValueId& id, double& scale) const;
  PermutedValue without_scale(ValueId id, double& scale) const;
  ValueId without_nan_guard(ValueId id, bool& guarded) const;

  const Graph& graph_;
  std::vector<bool> trained_;  // by value: depends on a parameter, so that it cannot be a mask
};

}  // namespace zeroplan
