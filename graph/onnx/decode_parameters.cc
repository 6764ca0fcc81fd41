// Initializers and Constant nodes as values: parameters where they have that role, else constants.
#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {

ValueId GraphDecoder::parameter(int index) {
  const auto [found, added] = parameters_.emplace(index, kNone);
  if (!added) return found->second;
  const Parameter& p = roles_.parameters[index];
  Value value;
  value.name = p.name;
  value.dtype = precision_;
  value.shape = p.shape;
  value.kind = ValueKind::parameter;
  value.parameter = index;
  return found->second = build_.graph().add_value(std::move(value));
}

// An initializer or the tensor of a Constant node that is a parameter: the parameter, or its transpose.
ValueId GraphDecoder::stored(const std::string& name) {
  const auto role = roles_.by_name.find(name);
  if (role != roles_.by_name.end() && roles_.candidates[role->second].parameter >= 0) {
    const Candidate& c = roles_.candidates[role->second];
    const ValueId id = parameter(c.parameter);
    return c.transposed ? build_.transpose(id, {1, 0}) : id;
  }
  const auto tensor = initializers_.find(name);
  return tensor == initializers_.end() ? kNone : build_.constant(load_tensor(*tensor->second, files_, precision_));
}

}  // namespace zeroplan
