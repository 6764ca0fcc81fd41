#pragma once
// The limit on what unrolling a loop may build.
#include "graph/onnx/folding_builder.h"

namespace zeroplan {

// The graph may grow by kMaxUnrolledNodes for one node of the model.
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
