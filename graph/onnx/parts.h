#pragma once
// Pieces of values and values made of pieces, and the limit on what unrolling may build.
#include <vector>

#include "graph/onnx/folding_builder.h"

namespace zeroplan {

// Elements start … start + count - 1 along an axis.
ValueId part(FoldingBuilder& build, ValueId x, int64_t axis, int64_t start, int64_t count);
// One of them, without the axis.
ValueId item(FoldingBuilder& build, ValueId x, int64_t axis, int64_t index);
// Values of one shape along a new axis.
ValueId stack(FoldingBuilder& build, const std::vector<ValueId>& items, int64_t axis);
// Values along an axis that they have.
ValueId join(FoldingBuilder& build, const std::vector<ValueId>& parts, int64_t axis);

// A loop that is unrolled: the graph may grow by kMaxUnrolledNodes for one node of the model.
class UnrollLimit {
 public:
  explicit UnrollLimit(const FoldingBuilder& build);
  // Throws Error once the limit is passed; `done` of `total` repetitions are built (total < 0: not known).
  void check(int64_t done, int64_t total) const;
  // Throws Error where so many repetitions are bound to pass it.
  void check_steps(int64_t total) const;

 private:
  [[noreturn]] static void refuse(int64_t done, int64_t total);
  const FoldingBuilder& build_;
  const size_t nodes_, values_;
  const int64_t bytes_;
};

}  // namespace zeroplan
