#include "tests/conformance/check_forward.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "graph/onnx/tensor_data.h"
#include "tests/conformance/forward.h"

namespace zeroplan {
namespace {

// Tolerances of ONNX's own runner: |ours - expected| <= 1e-7 + 1e-3 |expected|.
bool close(double ours, double expected) {
  if (std::isnan(expected) || std::isnan(ours)) return std::isnan(expected) && std::isnan(ours);
  return ours == expected || std::abs(ours - expected) <= 1e-7 + 1e-3 * std::abs(expected);
}

// Empty where the two agree.
std::string difference(const SuiteTensor& expected, const HostTensor& ours) {
  if (ours.shape() != expected.values.shape())
    return fmt::format("output '{}' has shape {}, expected {}", expected.name, to_string(ours.shape()), to_string(expected.values.shape()));
  if (is_floating(ours.dtype()) != is_floating(expected.values.dtype()))
    return fmt::format("output '{}' is {}, expected {}", expected.name, dtype_name(ours.dtype()), onnx_type_name(expected.type));
  for (int64_t i = 0; i < ours.count(); ++i)
    if (!close(ours.get(i), expected.values.get(i)))
      return fmt::format("output '{}'[{}] is {}, expected {}", expected.name, i, ours.get(i), expected.values.get(i));
  return "";
}

// As a user would choose --precision for the data.
DType precision_of(const DataSet& set) {
  const auto is_double = [](const SuiteTensor& tensor) { return tensor.type == kOnnxDouble; };
  return std::any_of(set.inputs.begin(), set.inputs.end(), is_double) ? DType::f64 : DType::f32;
}

// Attributes that made the expected outputs of a case and are missing in its model; a line of the output says so.
struct Correction {
  const char* name;
  const char* attribute;
  float value;
};
constexpr Correction kCorrections[] = {{"test_adam_multiple", "epsilon", 0.01F}};

// The model of the case, or in `folder` a corrected copy.
std::string model_of(const SuiteCase& suite_case, const TemporaryFolder& folder) {
  for (const Correction& correction : kCorrections) {
    if (suite_case.name != correction.name) continue;
    onnx::ModelProto model;
    std::ifstream in(suite_case.model, std::ios::binary);
    if (!model.ParseFromIstream(&in)) throw Error("the model cannot be parsed");
    onnx::AttributeProto& attribute = *model.mutable_graph()->mutable_node(0)->add_attribute();
    attribute.set_name(correction.attribute);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(correction.value);
    fmt::print(stderr, "  {}: run with {} = {}, which made its expected outputs and is not in its model\n", suite_case.name,
               correction.attribute, correction.value);
    write_file(folder.path() + "/model.onnx", model.SerializeAsString());
    return folder.path() + "/model.onnx";
  }
  return suite_case.model.string();
}

}  // namespace

std::string check_forward(SuiteCase suite_case, bool reference) {
  try {
    load_case(suite_case);
    const TemporaryFolder folder;
    const ModelFile file(model_of(suite_case, folder));
    for (const DataSet& set : suite_case.sets) {
      const DType precision = precision_of(set);
      const Forward forward = import_forward(file, set, precision);
      const auto outputs = reference ? evaluate_reference(forward) : evaluate_plan(file, forward, precision);
      if (outputs.size() != set.outputs.size())
        return fmt::format("it has {} output values, expected {}", outputs.size(), set.outputs.size());
      for (const SuiteTensor& expected : set.outputs)
        if (const std::string text = difference(expected, outputs.at(expected.name)); !text.empty()) return text;
    }
  } catch (const ErrorList& list) {
    return list.problems().empty() ? list.what() : list.problems()[0];
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace zeroplan
