#pragma once
// Weights that stand among the numbers of a formula, and numbers of a formula that are stored like weights: for files that say neither.
#include <string>

#include "graph/onnx/model.h"
#include "graph/onnx/roles.h"

namespace zeroplan {

// Whether the file keeps its weights in Constant nodes: no initializer holds more than one floating-point value.
bool weights_are_constants(const OnnxModel& model);
// TorchScript's exporter stores all weights as initializers, so that its Constant nodes hold numbers of formulas, such as the scale of a
// normalization without one.
bool constants_are_numbers(const OnnxModel& model);
// Whether a Constant node's tensor may be a weight: it is large, stands where its reader has a bias or a scale, or the file keeps its
// weights so and names this one otherwise than a constant.
bool constant_may_be_weight(const OnnxTensor& tensor, const std::vector<Use>& readers, bool weights_are_constants);
// Why a tensor of one element looks like a number of a formula; nullptr: it may be a weight.
const char* literal_reason(const OnnxModel& model, const OnnxTensor& tensor, const std::vector<Use>& readers, const UseMap& uses);

}  // namespace zeroplan
