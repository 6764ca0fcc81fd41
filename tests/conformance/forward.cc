#include "tests/conformance/forward.h"

#include <cstring>

#include "api/zeroplan.h"
#include "base/error.h"
#include "graph/onnx/stored_weight.h"
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

std::map<std::string, int64_t> dims_of(const ModelFile& file, const DataSet& set, const std::map<std::string, HostTensor>& bound) {
  std::map<std::string, int64_t> sizes;
  const ModelPeek peek = file.peek();
  for (const SuiteTensor& input : set.inputs) {
    const auto dims = peek.input_dims.find(input.name);
    if (dims == peek.input_dims.end() || bound.count(input.name)) continue;
    for (size_t i = 0; i < dims->second.size() && i < input.values.shape().size(); ++i)
      if (const std::string& dim = dims->second[i]; dim.find_first_not_of("0123456789") != std::string::npos)
        sizes[dim] = input.values.shape()[i];
  }
  return sizes;
}

Forward import_with(const ModelFile& file, const DataSet& set, DType precision, Binding binding) {
  Forward forward;
  ImportOptions options;
  options.precision = precision;
  for (const SuiteTensor& input : set.inputs)
    if (input.item || binds(binding, input.values)) forward.bound[input.name] = input.values;
  options.bind = forward.bound;
  options.dropout_masks = forward.masks = set.masks;
  options.dims = forward.dims = dims_of(file, set, forward.bound);
  forward.outputs = set.sequences;
  for (const SuiteTensor& output : set.outputs)
    if (!output.item) forward.outputs.push_back(output.name);
  options.outputs = forward.outputs;
  forward.model = file.decode(options);
  return forward;
}

// The values of the inputs of a plan, whole.
class GivenData : public DataSource {
 public:
  GivenData(const Plan& plan, const Forward& forward) {
    for (const PlanInput& input : plan.inputs)
      for (const ImportedInput& from : forward.model.inputs)
        if (from.name == input.name) inputs_.push_back(forward.values.at(from.value));
  }
  int64_t samples() const override { return 1; }
  void read(int index, int64_t, int64_t, const int64_t*, const TensorView& to) const override {
    std::memcpy(to.data, inputs_.at(index).data(), static_cast<size_t>(inputs_[index].bytes()));
  }

 private:
  std::vector<HostTensor> inputs_;
};

}  // namespace

Forward import_forward(const ModelFile& file, const DataSet& set, DType precision) {
  for (const Binding binding : {Binding::none, Binding::integers, Binding::vectors, Binding::all}) {
    Forward forward;
    try {
      forward = import_with(file, set, precision, binding);
    } catch (const Error&) {
      if (binding == Binding::all) throw;
      continue;
    }
    const Graph& graph = forward.model.graph;
    for (const SuiteTensor& input : set.inputs)
      for (const ImportedInput& wanted : forward.model.inputs)
        if (wanted.name == input.name) forward.values[wanted.value] = input.values.cast(graph.value(wanted.value).dtype);
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

std::map<std::string, HostTensor> evaluate_plan(const ModelFile& file, const Forward& forward, DType precision) {
  CompileOptions options;
  options.precision = precision;
  options.dims = forward.dims;
  options.bind = forward.bound;
  options.dropout_masks = forward.masks;
  options.outputs = forward.outputs;
  const auto samples = forward.dims.find(file.peek({}, forward.bound).sample_symbol);
  if (samples != forward.dims.end()) options.batch = samples->second;
  const Plan plan = compile(file, options);
  const std::unique_ptr<Executor> executor = make_executor(plan, {}, file.weights());
  std::map<std::string, HostTensor> outputs;
  executor->predict(GivenData(plan, forward), 0, nullptr,
                    [&](int64_t, const PlanOutput& output, const HostTensor& values) { outputs[output.name] = values; });
  return outputs;
}

}  // namespace zeroplan
