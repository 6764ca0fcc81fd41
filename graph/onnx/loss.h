#pragma once
// The loss of a model: which one (an output, or a built-in over outputs and labels), and its form as sum over weight.
#include <map>
#include <string>
#include <vector>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/model.h"
#include "graph/onnx/sample_mask.h"

namespace zeroplan {

// Formulas as in PyTorch's functions of these names; cosine is 1 - cosine_similarity over the last axis.
struct LossSpec {
  enum class Kind : uint8_t { output, softmax_cross_entropy, nll, bce_with_logits, mse, l1, smooth_l1, huber, cosine };
  Kind kind = Kind::output;
  std::string output;  // of the model
  std::string labels;  // built-ins: the input that they add, or one that the model has
  int64_t axis = -1;   // class axis
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::vector<double> class_weights;  // empty: 1 each
  std::vector<double> pos_weight;     // one, or one for each element of the last axis; empty: 1
  double beta = 1;                    // of smooth_l1; delta of huber
  bool sum = false;                   // reduction=sum instead of mean

  bool has_classes() const { return kind == Kind::softmax_cross_entropy || kind == Kind::nll; }
};

// What could be the loss, as --loss would state it.
std::vector<std::string> list_loss_candidates(const OnnxGraph& graph);
// Throws Error where the text is malformed, or empty and the model does not tell. Reads the file that class_weights names.
LossSpec parse_loss(const std::string& text, const OnnxGraph& graph);

// The scalar of a built-in over `scores` and `labels`; ends in nodes that attach_loss can read.
ValueId build_loss(FoldingBuilder& build, const LossSpec& spec, ValueId scores, ValueId labels);
Shape label_shape(const LossSpec& spec, const Shape& scores);

// What the same model read with twice the samples tells, such as what a shape is worth in sum / x.shape[0]. `samples`: of the half.
struct TwiceTheSamples {
  int64_t samples = 0;          // 0: the model was not read so
  std::vector<double> factors;  // loss_factors
};
struct LossReading {
  int64_t micro_batches = 1;
  std::map<ValueId, int> sample_axes;  // of the inputs that have one
  TwiceTheSamples twice;
  SampleMask* mask = nullptr;  // null: all samples count
};
struct AttachedLoss {
  Loss loss;
  bool masked = false;  // samples that do not count are left out, wherever the mask says so
};

// Constants that multiply the terms of `loss`, in order; empty where it is neither a mean nor a sum. Adds nodes. `whole`: of one
// micro-batch.
std::vector<double> loss_factors(FoldingBuilder& build, ValueId loss, const std::map<ValueId, int>& sample_axes, bool whole);
// Rewrites the scalar `loss` as sum over weight. Throws Error naming the node where it is neither a mean nor a sum and there is more
// than one micro-batch.
AttachedLoss attach_loss(FoldingBuilder& build, ValueId loss, const LossReading& reading);

}  // namespace zeroplan
