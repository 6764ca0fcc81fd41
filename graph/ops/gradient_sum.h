#pragma once
// The contributions to each value's gradient, in the order in which the backward makes them. Their sum is a left-to-right chain of adds
// that the backward fixes; slices that tile the value are put together by one concat instead. Those of a parameter in 16 bits are added up
// in float32.
#include <map>
#include <optional>
#include <vector>

#include "graph/ops/builder.h"

namespace zeroplan {

class GradientSum {
 public:
  GradientSum(Graph& graph, Builder& build) : graph_(graph), build_(build) {}
  void contribute(ValueId value, ValueId gradient);
  // kNone without contributions. Adds nodes where there are several.
  ValueId total(ValueId value);

 private:
  const Node* slice_gradient(ValueId id) const;
  ValueId widened(ValueId gradient);
  void join_slices(std::vector<ValueId>& parts);
  // All of them results of slice_grad.
  std::optional<ValueId> concat_slices(const std::vector<ValueId>& parts);

  Graph& graph_;
  Builder& build_;
  std::map<ValueId, std::vector<ValueId>> parts_;
};

}  // namespace zeroplan
