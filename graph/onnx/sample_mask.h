#pragma once
// Which samples of a micro-batch count, and how much. The last batch of an epoch is completed by samples that do not: their terms are +0,
// chosen, not multiplied, so that what they hold does not matter.
#include <cstdint>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/sample_axes.h"

namespace zeroplan {

// Label of a sample that does not count, where the loss itself ignores none.
inline constexpr int64_t kNoLabel = INT32_MIN;

class SampleMask {
 public:
  // `fills`: what fills up a batch that is not full does not count. `weights` [samples]: how much each sample counts, as often as if it
  // were there so many times; kNone: once.
  SampleMask(FoldingBuilder& build, int64_t samples, bool fills, ValueId weights)
      : build_(build), samples_(samples), fills_(fills && samples > 1), weights_(weights) {}

  // With one sample there is nothing to choose, as a micro-batch without a sample that counts is not run.
  bool needed() const { return fills_ || weighted(); }
  bool fills() const { return fills_; }
  bool weighted() const { return weights_ != kNone; }
  int64_t samples() const { return samples_; }
  // boolean [samples], an input of the graph from the first use on; kNone before.
  ValueId input() const { return input_; }
  // `x` where its sample counts, `otherwise` elsewhere. `lie`: of Kind::axis, or any where there is one sample.
  ValueId select(ValueId x, const SampleAxis& lie, double otherwise = 0);
  // `x` times the weight of its sample, +0 where it does not count.
  ValueId weigh(ValueId x, const SampleAxis& lie);
  ValueId count(DType dtype);  // of the samples that count, or the sum of their weights; scalar

 private:
  ValueId valid();   // boolean [samples], kNone: all
  ValueId counts();  // those of them that have a weight
  ValueId spread(ValueId each, const Shape& shape, const SampleAxis& lie);

  FoldingBuilder& build_;
  const int64_t samples_;
  const bool fills_;
  const ValueId weights_;
  ValueId input_ = kNone;
};

// Is `id`, a condition, made of the mask `input` alone?
bool is_sample_mask(const Graph& graph, ValueId id, ValueId input);

}  // namespace zeroplan
