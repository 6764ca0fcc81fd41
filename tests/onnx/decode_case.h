#pragma once
// Forward values of small models, by the reference evaluators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {

// The values of output y of the model; `inputs` by name, in the shapes that it states.
inline HostTensor forward(const ModelBuilder& m, const std::map<std::string, HostTensor>& inputs = {}) {
  TemporaryFolder folder;
  ImportOptions options;
  options.outputs = {"y"};
  options.precision = DType::f64;
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  std::map<ValueId, HostTensor> values;
  load_parameters(model, values);
  for (const ImportedInput& input : model.inputs) values[input.value] = inputs.at(input.name).cast(model.graph.value(input.value).dtype);
  evaluate_program(model.graph, Program::micro_step, values);
  const ValueId y = model.outputs.at(0).value;
  return model.graph.value(y).kind == ValueKind::constant ? model.graph.value(y).constant : values.at(y);
}

inline std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> list;
  for (int64_t i = 0; i < tensor.count(); ++i) list.push_back(tensor.get(i));
  return list;
}

inline HostTensor reals(Shape shape, const std::vector<double>& values) { return HostTensor::of(DType::f64, std::move(shape), values); }
inline HostTensor whole(Shape shape, const std::vector<int64_t>& values) { return HostTensor::of(DType::i64, std::move(shape), values); }
// 0, 1, 2, …
inline HostTensor counted(Shape shape) {
  HostTensor tensor(DType::f64, std::move(shape));
  for (int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

}  // namespace zeroplan
