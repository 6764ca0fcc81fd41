#pragma once
// Values of an imported model by the reference evaluators.
#include <map>
#include <string>

#include "base/error.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/stored_weight.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

inline ImportOptions samples(int64_t n) {
  ImportOptions options;
  options.samples = n;
  return options;
}

// What `fn` is refused with; empty where it is not.
template <typename Fn>
std::string message(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline void load_parameters(const ImportedModel& model, std::map<ValueId, HostTensor>& values) {
  WeightFiles files(model.model_path);
  for (size_t i = 0; i < model.graph.values.size(); ++i) {
    const Value& value = model.graph.values[i];
    if (value.kind != ValueKind::parameter) continue;
    const Parameter& p = model.graph.parameters[value.parameter];
    HostTensor weight(value.dtype, p.shape);
    read_weight(files, p.source, 0, weight.count(), value.dtype, weight.mutable_data());
    values[static_cast<ValueId>(i)] = weight;
  }
}

struct LossParts {
  double sum = 0, weight = 0;  // weight 1 where the loss is a sum
};

// Loss of one micro-batch; `inputs` by name.
inline LossParts evaluate_parts(const ImportedModel& model, const std::map<std::string, HostTensor>& inputs) {
  std::map<ValueId, HostTensor> values;
  load_parameters(model, values);
  for (const ImportedInput& input : model.inputs) {
    const Value& value = model.graph.value(input.value);
    const auto found = inputs.find(input.name);
    if (input.mask && found == inputs.end()) {  // every sample counts
      values[input.value] = HostTensor::of(DType::boolean, value.shape, std::vector<int>(elements(value.shape), 1));
      continue;
    }
    const HostTensor& given = inputs.at(input.name);
    if (given.shape() != value.shape) throw Error("test data of another shape for " + input.name);
    values[input.value] = given.cast(value.dtype);
  }
  evaluate_program(model.graph, Program::micro_step, values);
  const auto number = [&](ValueId id) {
    return (model.graph.value(id).kind == ValueKind::constant ? model.graph.value(id).constant : values.at(id)).get(0);
  };
  return {number(model.graph.loss.sum), model.graph.loss.weight == kNone ? 1 : number(model.graph.loss.weight)};
}

inline double evaluate_loss(const ImportedModel& model, const std::map<std::string, HostTensor>& inputs) {
  const LossParts parts = evaluate_parts(model, inputs);
  return parts.sum / parts.weight;
}

// The loss of a batch of the one input x, put together from its micro-batches as training does; x(first, count) gives samples.
template <typename Samples>
double evaluate_in_pieces(const ImportedModel& model, int64_t batch, int64_t micro_batches, const Samples& x) {
  LossParts total;
  const int64_t count = batch / micro_batches;
  for (int64_t v = 0; v < micro_batches; ++v) {
    const LossParts part = evaluate_parts(model, {{"x", x(v * count, count)}});
    total.sum += part.sum;
    total.weight += part.weight;
  }
  return total.sum / total.weight;
}

}  // namespace zeroplan
