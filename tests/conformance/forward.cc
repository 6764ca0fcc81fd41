#include "tests/conformance/forward.h"

#include "base/error.h"
#include "graph/onnx/weights.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

// Which inputs are constants, from none to all; those that shapes are made of come first.
enum class Binding : uint8_t { none, integers, vectors, all };

bool binds(Binding binding, const HostTensor& input) {
  switch (binding) {
    case Binding::none: return false;
    case Binding::integers: return !is_floating(input.dtype());
    case Binding::vectors: return !is_floating(input.dtype()) || input.shape().size() <= 1;
    case Binding::all: return true;
  }
  return false;
}

ImportedModel import_with(const ModelFile& file, const DataSet& set, DType precision, Binding binding) {
  ImportOptions options;
  options.precision = precision;
  const ModelPeek peek = file.peek();
  for (const SuiteTensor& input : set.inputs) {
    if (binds(binding, input.values)) options.bind[input.name] = input.values;
    const auto dims = peek.input_dims.find(input.name);
    if (dims == peek.input_dims.end() || options.bind.count(input.name)) continue;
    for (size_t i = 0; i < dims->second.size() && i < input.values.shape().size(); ++i)
      if (const std::string& dim = dims->second[i]; dim.find_first_not_of("0123456789") != std::string::npos)
        options.dims[dim] = input.values.shape()[i];
  }
  for (const SuiteTensor& output : set.outputs) options.outputs.push_back(output.name);
  return file.decode(options);
}

}  // namespace

Forward import_forward(const ModelFile& file, const DataSet& set, DType precision) {
  for (const Binding binding : {Binding::none, Binding::integers, Binding::vectors, Binding::all}) {
    Forward forward;
    try {
      forward.model = import_with(file, set, precision, binding);
    } catch (const Error&) {
      if (binding == Binding::all) throw;
      continue;
    }
    const Graph& graph = forward.model.graph;
    for (const SuiteTensor& input : set.inputs) {
      if (binds(binding, input.values)) forward.bound[input.name] = input.values;
      for (const ImportedInput& wanted : forward.model.inputs)
        if (wanted.name == input.name) forward.values[wanted.value] = input.values.cast(graph.value(wanted.value).dtype);
    }
    const std::shared_ptr<WeightFiles> files = file.weights();
    for (size_t i = 0; i < graph.values.size(); ++i) {
      const Value& value = graph.values[i];
      if (value.kind != ValueKind::parameter) continue;
      const Parameter& p = graph.parameters[value.parameter];
      HostTensor weight(value.dtype, p.shape);
      read_weight(*files, p.source, 0, weight.count(), value.dtype, weight.mutable_data());
      forward.values[static_cast<ValueId>(i)] = std::move(weight);
    }
    return forward;
  }
  throw Error("unreachable");
}

std::map<std::string, HostTensor> evaluate_reference(const Forward& forward) {
  std::map<ValueId, HostTensor> values = forward.values;
  evaluate_program(forward.model.graph, Program::micro_step, values);
  std::map<std::string, HostTensor> outputs;
  for (const ImportedOutput& output : forward.model.outputs) {
    const Value& value = forward.model.graph.value(output.value);
    outputs[output.name] = value.kind == ValueKind::constant ? value.constant : values.at(output.value);
  }
  return outputs;
}

}  // namespace zeroplan
