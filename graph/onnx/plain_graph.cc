#include "graph/onnx/plain_graph.h"

#include <set>

#include <fmt/format.h>

#include "graph/onnx/proto_checks.h"

namespace zeroplan {

const OnnxAttribute* OnnxNode::find(const char* attribute) const {
  for (const OnnxAttribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

int64_t OnnxNode::integer(const char* attribute, int64_t otherwise) const {
  const OnnxAttribute* found = find(attribute);
  return found ? found->i : otherwise;
}

std::string OnnxNode::label() const {
  if (!name.empty()) return name;
  for (const std::string& output : outputs)
    if (!output.empty()) return output;
  return "(unnamed)";
}

namespace {

void add_graphs(const OnnxGraph& graph, std::vector<const OnnxGraph*>& list) {
  list.push_back(&graph);
  for (const OnnxNode& node : graph.nodes)
    for (const OnnxAttribute& a : node.attributes)
      if (a.graph) add_graphs(*a.graph, list);  // depth: kMaxMessageDepth
}

OnnxTensor plain_tensor(const onnx::TensorProto& tensor, const std::string& name, const StoredTensors& stored) {
  const auto found = stored.find(name);
  if (!name.empty() && found != stored.end()) return found->second;
  OnnxTensor out;
  out.name = name;
  out.type = tensor.data_type();
  out.shape = tensor_shape(tensor);
  out.bytes = tensor_contents(tensor);
  return out;
}

OnnxAttribute plain_attribute(const onnx::AttributeProto& attribute, const std::string& constant, const StoredTensors& stored) {
  OnnxAttribute out;
  out.name = attribute.name();
  out.type = attribute.type();
  out.f = attribute.f();
  out.i = attribute.i();
  out.s = attribute.s();
  out.floats.assign(attribute.floats().begin(), attribute.floats().end());
  out.ints.assign(attribute.ints().begin(), attribute.ints().end());
  out.strings.assign(attribute.strings().begin(), attribute.strings().end());
  if (attribute.has_t()) out.tensor = plain_tensor(attribute.t(), constant, stored);
  if (attribute.has_g()) out.graph = std::make_shared<const OnnxGraph>(plain_graph(attribute.g(), stored));  // depth: kMaxMessageDepth
  return out;
}

OnnxValueInfo plain_value(const onnx::ValueInfoProto& info) {
  OnnxValueInfo out;
  out.name = info.name();
  out.optional = info.type().has_optional_type();
  const onnx::TypeProto& type = out.optional ? info.type().optional_type().elem_type() : info.type();
  if (type.has_sequence_type()) out.item_type = type.sequence_type().elem_type().tensor_type().elem_type();
  if (!type.has_tensor_type()) return out;
  out.type = type.tensor_type().elem_type();
  out.ranked = type.tensor_type().has_shape();
  for (const auto& dim : type.tensor_type().shape().dim()) {
    OnnxDim plain;
    if (dim.has_dim_value() && dim.dim_value() > 0)
      plain.value = dim.dim_value();
    else if (dim.has_dim_param() && !dim.dim_param().empty())
      plain.symbol = dim.dim_param();
    else
      plain.symbol = fmt::format("{}[{}]", info.name(), out.dims.size());
    out.dims.push_back(plain);
  }
  return out;
}

}  // namespace

std::vector<const OnnxGraph*> all_graphs(const OnnxGraph& graph) {
  std::vector<const OnnxGraph*> list;
  add_graphs(graph, list);
  return list;
}

OnnxGraph plain_graph(const onnx::GraphProto& graph, const StoredTensors& stored) {
  OnnxGraph out;
  std::set<std::string> initialized;
  for (const auto& tensor : graph.initializer()) {
    out.initializers.push_back(plain_tensor(tensor, tensor.name(), stored));
    initialized.insert(tensor.name());
  }
  for (const auto& info : graph.input())
    if (!initialized.count(info.name())) out.inputs.push_back(plain_value(info));
  for (const auto& info : graph.output()) out.outputs.push_back(plain_value(info));
  for (const auto& node : graph.node()) {
    OnnxNode plain;
    plain.name = node.name();
    plain.op = node.op_type();
    plain.domain = is_default_domain(node.domain()) ? "" : node.domain();
    plain.inputs.assign(node.input().begin(), node.input().end());
    plain.outputs.assign(node.output().begin(), node.output().end());
    const std::string constant = node.op_type() == "Constant" && node.output_size() == 1 ? node.output(0) : "";
    for (const auto& attribute : node.attribute()) plain.attributes.push_back(plain_attribute(attribute, constant, stored));
    out.nodes.push_back(std::move(plain));
  }
  return out;
}

}  // namespace zeroplan
