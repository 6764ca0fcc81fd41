#include "tests/fuzz/libfuzzer/mutate_model.h"

#include <onnx/onnx_pb.h>

#include "base/random.h"
#include "tests/fuzz/libfuzzer/mutate_node.h"
#include "tests/fuzz/libfuzzer/mutate_tensor.h"

namespace zeroplan {
namespace {

constexpr int kMostChanges = 4;
constexpr int kDepth = 8;  // of graphs in graphs that are looked into

struct Found {
  std::vector<onnx::GraphProto*> graphs;
  std::vector<onnx::TensorProto*> tensors;
  std::vector<onnx::ValueInfoProto*> infos;
};

void find(onnx::GraphProto& graph, int depth, Found& found) {
  found.graphs.push_back(&graph);
  for (auto& tensor : *graph.mutable_initializer()) found.tensors.push_back(&tensor);
  for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *list) found.infos.push_back(&info);
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) found.tensors.push_back(attribute.mutable_t());
      if (attribute.has_g() && depth < kDepth) find(*attribute.mutable_g(), depth + 1, found);
    }
}

void change_info(Choice& choice, const std::vector<onnx::ValueInfoProto*>& infos) {
  if (infos.empty()) return;
  onnx::ValueInfoProto& info = *choice.of(infos);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  auto& dims = *type.mutable_shape()->mutable_dim();
  switch (choice.below(5)) {
    case 0: return type.set_elem_type(choice.element_type());
    case 1: return choice.drop(dims);
    case 2: return dims.Add()->set_dim_value(choice.size());
    case 3:
      if (dims.empty()) return;
      return dims[choice.below(dims.size())].set_dim_param(choice.below(2) ? "N" : "M");
    default:
      if (!dims.empty()) dims[choice.below(dims.size())].set_dim_value(choice.size());
  }
}

void change_versions(Choice& choice, onnx::ModelProto& model) {
  if (choice.below(4) == 0) return model.set_ir_version(choice.below(15));
  if (model.opset_import().empty()) model.add_opset_import();
  auto& import = *model.mutable_opset_import(choice.below(model.opset_import_size()));
  import.set_version(1 + choice.below(25));
  if (choice.below(16) == 0) import.set_domain(choice.below(2) ? "ai.onnx.preview.training" : "com.microsoft");
}

// An input of the graph becomes a constant: what depends on its value is computed at import.
void fix_input(Choice& choice, onnx::GraphProto& graph) {
  if (graph.input().empty()) return;
  const int at = choice.below(graph.input_size());
  const onnx::ValueInfoProto info = graph.input(at);
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(info.name());
  tensor.set_data_type(info.type().tensor_type().elem_type());
  for (const auto& dim : info.type().tensor_type().shape().dim())
    tensor.add_dims(dim.dim_value() > 0 && dim.dim_value() < 64 ? dim.dim_value() : 2);
  refill(choice, tensor);
  graph.mutable_input()->DeleteSubrange(at, 1);
}

void change(Choice& choice, onnx::ModelProto& model) {
  Found found;
  find(*model.mutable_graph(), 0, found);
  onnx::GraphProto& graph = *choice.of(found.graphs);
  switch (choice.below(16)) {
    case 0: return change_versions(choice, model);
    case 1:
    case 2: return change_info(choice, found.infos);
    case 3: return fix_input(choice, *found.graphs[0]);
    case 4:
    case 5:
    case 6:
    case 7:
      if (!found.tensors.empty()) change_tensor(choice, *choice.of(found.tensors));
      return;
    default: return change_nodes(choice, graph);
  }
}

}  // namespace

std::string mutated_model(std::string_view bytes, unsigned int seed) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph()) return {};
  Choice choice(seed);
  for (int changes = 1 + choice.below(kMostChanges); changes > 0; --changes) change(choice, model);
  return model.SerializeAsString();
}

}  // namespace zeroplan
