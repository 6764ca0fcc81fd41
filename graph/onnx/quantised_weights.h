#pragma once
// Integer tensors that stand for weights: where their scale and zero point lie.
#include <map>
#include <optional>
#include <string>

#include "graph/onnx/roles.h"

namespace zeroplan {

using TensorMap = std::map<std::string, const OnnxTensor*>;

// Tensors that the file stores, initializers and those of Constant nodes, by the name of their value.
TensorMap stored_tensors(const OnnxGraph& graph);

struct QuantisedWeight {
  std::optional<Quantization> quantization;  // none: it cannot be trained, `why` says the reason
  std::string why;
};

// What the readers of an integer tensor say of it; nothing at all where it is no weight of an operator on quantised numbers.
std::optional<QuantisedWeight> quantised_weight(const OnnxTensor& tensor, const std::vector<Use>& readers, const TensorMap& stored);

// An axis of `shape` that scales lie along; 0 where there is one for all.
int64_t quantised_axis(const Quantization& q, const Shape& shape);
DType stored_dtype(StoredType integers);

}  // namespace zeroplan
