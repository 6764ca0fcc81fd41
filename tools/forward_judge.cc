#include "tools/forward_judge.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Integers come in and are multiplied: MatMulInteger, QLinearConv, com.microsoft's QGemm, …
bool multiplies_integers(const OnnxNode& node) {
  return contains(node.op, "Integer") || contains(node.op, "QLinear") || node.op == "QGemm" || node.op == "QAttention" ||
         node.op == "DynamicQuantizeMatMul" || node.op == "DynamicQuantizeLSTM";
}

// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: fused with what stands between them.
bool quantizes(const OnnxNode& node) { return contains(node.op, "uantizeLinear"); }

void add_types(const OnnxNode& node, std::set<int>& types) {
  for (const OnnxAttribute& attribute : node.attributes) {
    types.insert(attribute.tensor.type);
    if (attribute.name == "to" || attribute.name == "dtype" || attribute.name == "output_dtype")
      types.insert(static_cast<int>(attribute.i));
  }
}

std::set<int> types_of(const OnnxModel& model) {
  std::set<int> types;
  for (const OnnxGraph* graph : all_graphs(model.graph)) {
    for (const OnnxTensor& tensor : graph->initializers) types.insert(tensor.type);
    for (const auto* infos : {&graph->inputs, &graph->outputs})
      for (const OnnxValueInfo& info : *infos) types.insert({info.type, info.item_type});
    for (const OnnxNode& node : graph->nodes) add_types(node, types);
  }
  return types;
}

std::string describe_node(const OnnxModel& model, const Node& drawing) {
  for (const OnnxGraph* graph : all_graphs(model.graph))
    for (const OnnxNode& node : graph->nodes)
      if (node.label() == drawing.origin) return fmt::format("node '{}' ({})", node.label(), node.op);
  return fmt::format("node '{}'", drawing.origin);
}

}  // namespace

OnnxRuntimeKernels wanted_kernels(const OnnxModel& model) {
  OnnxRuntimeKernels kernels = OnnxRuntimeKernels::usual;
  for (const OnnxGraph* graph : all_graphs(model.graph))
    for (const OnnxNode& node : graph->nodes) {
      if (multiplies_integers(node)) return OnnxRuntimeKernels::exact_integers;
      if (quantizes(node)) kernels = OnnxRuntimeKernels::plain;
    }
  return kernels;
}

Tolerance forward_tolerance(const OnnxModel& model) {
  const std::set<int> types = types_of(model);
  for (const auto& [type, bits] : {std::pair{kOnnxBfloat16, 7}, std::pair{kOnnxFloat16, 10}})
    if (types.count(type))
      return {std::ldexp(1.0, -bits), fmt::format("{} in the file rounds by up to 2^-{} of it", onnx_type_name(type), bits)};
  return {};
}

std::map<std::string, std::string> random_outputs(const OnnxModel& model, const ImportedModel& imported) {
  const Graph& graph = imported.graph;
  std::vector<const Node*> drawn(graph.values.size(), nullptr);  // node whose random numbers a value depends on
  for (const Node& node : graph.nodes) {
    const Node* from = node.op == OpKind::dropout || node.op == OpKind::random_uniform ? &node : nullptr;
    for (const ValueId id : node.inputs)
      if (!from && id != kNone) from = drawn[id];
    for (const ValueId id : node.outputs)
      if (id != kNone) drawn[id] = from;
  }
  std::map<std::string, std::string> outputs;
  for (const ImportedOutput& output : imported.outputs)
    if (output.value != kNone && drawn[output.value]) outputs[output.name] = describe_node(model, *drawn[output.value]);
  return outputs;
}

}  // namespace zeroplan
