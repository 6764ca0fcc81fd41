#pragma once
// The loss of a model: which one (an output, or a built-in over outputs and labels), and its form as sum over weight.
#include <map>
#include <string>
#include <vector>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/model.h"

namespace zeroplan {

struct LossSpec {
  enum class Kind : uint8_t { output, softmax_cross_entropy, mse };
  Kind kind = Kind::output;
  std::string output;  // of the model
  std::string labels;  // built-ins: the input that they add, or one that the model has
  int64_t axis = -1;   // class axis
  int64_t ignore_index = -100;
};

// What could be the loss, as --loss would state it.
std::vector<std::string> list_loss_candidates(const OnnxGraph& graph);
// Throws Error where the text is malformed, or empty and the model does not tell.
LossSpec parse_loss(const std::string& text, const OnnxGraph& graph);

// A built-in over `scores` and `labels`.
Loss build_loss(FoldingBuilder& build, const LossSpec& spec, ValueId scores, ValueId labels);
Shape label_shape(const LossSpec& spec, const Shape& scores);
// Constants that multiply the terms of `loss`, in order; empty where it is neither a mean nor a sum. Adds nodes.
std::vector<double> loss_factors(FoldingBuilder& build, ValueId loss, const std::map<ValueId, int>& sample_axes);
// What the same model read with twice the samples tells, such as what a shape is worth in sum / x.shape[0]. `samples`: of the half.
struct TwiceTheSamples {
  int64_t samples = 0;          // 0: the model was not read so
  std::vector<double> factors;  // loss_factors
};
// Rewrites the scalar `loss` as sum over weight. Throws Error naming the node where it is neither a mean nor a sum and there is more
// than one micro-batch. `sample_axes`: of the inputs that have one.
Loss attach_loss(FoldingBuilder& build, ValueId loss, int64_t micro_batches, const std::map<ValueId, int>& sample_axes = {},
                 const TwiceTheSamples& twice = {});

}  // namespace zeroplan
