#include "graph/onnx/literals.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

constexpr int64_t kLargeConstant = 64;  // elements, of rank 2 and more

// Where an operator takes a bias, a scale or another weight that may be small.
struct WeightInput {
  const char* op;
  int first, last;
};
constexpr WeightInput kWeightInputs[] = {
    {"Conv", 1, 2},
    {"ConvTranspose", 1, 2},
    {"Gemm", 2, 2},
    {"BatchNormalization", 1, 2},
    {"InstanceNormalization", 1, 2},
    {"LayerNormalization", 1, 2},
    {"GroupNormalization", 1, 2},
    {"RMSNormalization", 1, 1},
    {"PRelu", 1, 1},
    {"LSTM", 1, 3},
    {"LSTM", 7, 7},
    {"GRU", 1, 3},
    {"RNN", 1, 3},
};

bool is_weight_input(const Use& use) {
  return std::any_of(std::begin(kWeightInputs), std::end(kWeightInputs),
                     [&](const WeightInput& row) { return use.node->op == row.op && use.input >= row.first && use.input <= row.last; });
}

bool any_weight_input(const std::vector<Use>& readers) { return std::any_of(readers.begin(), readers.end(), is_weight_input); }

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool is_bound(const Use& use) { return is_one_of(use.node->op, {"Max", "Min", "Where"}); }

// The sum is what a root or a logarithm is taken of, or a divisor.
bool keeps_from_zero(const Use& use, const UseMap& uses) {
  if (!is_one_of(use.node->op, {"Add", "Sub"})) return false;
  const auto readers = uses.find(use.node->outputs[0]);
  return readers != uses.end() && std::all_of(readers->second.begin(), readers->second.end(), [](const Use& reader) {
           return is_one_of(reader.node->op, {"Sqrt", "Log", "Reciprocal"}) || (reader.node->op == "Div" && reader.input == 1);
         });
}

// TorchScript's exporter gives an initializer the path of its parameter or buffer, and other values a number, onnx::Op_1 or
// /scope/Op_output_0.
bool named_by_module(const OnnxModel& model, const std::string& name) {
  const bool letter = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  return model.producer.starts_with("pytorch") && letter && !name.starts_with("onnx::");
}

}  // namespace

bool weights_are_constants(const OnnxModel& model) {
  for (const OnnxGraph* graph : all_graphs(model.graph))
    for (const OnnxTensor& tensor : graph->initializers)
      if (is_floating_type(tensor.type)) return false;
  return true;
}

bool constants_are_numbers(const OnnxModel& model) { return model.producer.starts_with("pytorch") && !weights_are_constants(model); }

bool constant_may_be_weight(const OnnxTensor& tensor, const std::vector<Use>& readers, bool weights_are_constants) {
  if (tensor.shape.size() >= 2 && elements(tensor.shape) >= kLargeConstant) return true;
  const bool called_constant = tensor.name.find("onstant") != std::string::npos;
  return any_weight_input(readers) || (weights_are_constants && !called_constant);
}

const char* literal_reason(const OnnxModel& model, const OnnxTensor& tensor, const std::vector<Use>& readers, const UseMap& uses) {
  if (elements(tensor.shape) != 1 || readers.empty() || any_weight_input(readers)) return nullptr;
  const bool renamed = std::any_of(readers.begin(), readers.end(), [](const Use& use) { return use.node->op == "Identity"; });
  if (renamed) return nullptr;  // exporters merge equal parameters so
  if (readers.size() > 1 && !named_by_module(model, tensor.name)) return "one value that several nodes read";
  if (is_bound(readers[0])) return "a bound";
  if (keeps_from_zero(readers[0], uses)) return "keeps a root, a logarithm or a divisor from zero";
  if (model.producer.starts_with("tf2onnx")) return "one value in a file of tf2onnx, which stores numbers of formulas so";
  return nullptr;
}

}  // namespace zeroplan
