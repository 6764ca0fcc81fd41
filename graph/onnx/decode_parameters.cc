// Tensors of the file as values of the graph: parameters, what quantised ones are read as, constants.
#include <optional>

#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/quantised_weights.h"
#include "graph/onnx/quantize.h"
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

// The integers of a quantised weight, made of what they stand for; their readers get at that by whole_numbers, so that it is trained.
ValueId GraphDecoder::shown(int index) {
  const ValueId master = parameter(index);
  const std::optional<Quantization>& q = roles_.parameters[index].source.quantization;
  if (!q) return master;
  const auto [found, added] = quantised_.emplace(index, kNone);
  if (!added) return found->second;
  const Term weight{build_, master};
  const auto spread_over = [&](const StoredRun& run, const char* what) {
    const Term numbers{build_, build_.constant(load_tensor(*roles_.scales.at(run.initializer), files_, precision_))};
    return spread(numbers, weight.shape(), quantised_axis(*q, weight.shape()), q->block, what).cast(precision_);
  };
  const DType dtype = stored_dtype(roles_.parameters[index].source.type);
  const Term ratio = weight / spread_over(q->scale, "scale");
  std::optional<Term> zero;
  if (q->zero_point.bytes > 0) zero = spread_over(q->zero_point, "zero point");
  return found->second = as_integers(rounded(ratio, zero ? &*zero : nullptr, dtype), dtype).id();
}

// An initializer or the tensor of a Constant node that is a parameter: the parameter, or its transpose.
ValueId GraphDecoder::stored(const std::string& name) {
  const auto role = roles_.by_name.find(name);
  if (role != roles_.by_name.end() && roles_.candidates[role->second].parameter >= 0) {
    const Candidate& c = roles_.candidates[role->second];
    const ValueId id = shown(c.parameter);
    return c.transposed ? build_.transpose(id, {1, 0}) : id;
  }
  const auto tensor = initializers_.find(name);
  return tensor == initializers_.end() ? kNone : build_.constant(load_tensor(*tensor->second, files_, precision_));
}

}  // namespace zeroplan
