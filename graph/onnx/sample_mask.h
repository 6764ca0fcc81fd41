#pragma once
// Which samples of a micro-batch count. The last batch of an epoch is completed by samples that do not: their terms are +0, chosen, not
// multiplied, so that what they hold does not matter.
#include <cstdint>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/sample_axes.h"

namespace zeroplan {

// Label of a sample that does not count, where the loss itself ignores none.
inline constexpr int64_t kNoLabel = INT32_MIN;

class SampleMask {
 public:
  // One sample or none: nothing to choose, as a micro-batch without a sample that counts is not run.
  SampleMask(FoldingBuilder& build, int64_t samples) : build_(build), samples_(samples) {}

  bool needed() const { return samples_ > 1; }
  int64_t samples() const { return samples_; }
  // boolean [samples], an input of the graph from the first use on; kNone before.
  ValueId input() const { return input_; }
  // `x` where its sample counts, `otherwise` elsewhere. `lie`: of Kind::axis.
  ValueId select(ValueId x, const SampleAxis& lie, double otherwise = 0);
  ValueId count(DType dtype);  // of the samples that count, scalar

 private:
  ValueId valid();

  FoldingBuilder& build_;
  const int64_t samples_;
  ValueId input_ = kNone;
};

// Is `id`, a condition, made of the mask `input` alone?
bool is_sample_mask(const Graph& graph, ValueId id, ValueId input);

}  // namespace zeroplan
