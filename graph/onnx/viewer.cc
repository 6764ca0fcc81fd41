// The internal graph as an ONNX file for viewers.
#include <onnx/onnx_pb.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "graph/onnx/exporter.h"
#include "graph/onnx/tensor_data.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

constexpr const char* kDomain = "ai.zeroplan";

void describe(const Value& value, onnx::ValueInfoProto& info) {
  info.set_name(value.name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx_type(value.dtype));
  type->mutable_shape();
  for (int64_t dim : value.shape) type->mutable_shape()->add_dim()->set_dim_value(dim);
}

void add_attribute(onnx::NodeProto& node, const std::string& name, const Attributes::Value& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  if (const auto* number = std::get_if<int64_t>(&value)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(*number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*text);
  } else {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (int64_t item : std::get<std::vector<int64_t>>(value)) attribute.add_ints(item);
  }
}

void add_text(onnx::NodeProto& node, const std::string& name, const std::string& text) {
  if (!text.empty()) add_attribute(node, name, text);
}

void add_node(const Graph& graph, const Node& node, onnx::GraphProto& out) {
  onnx::NodeProto& proto = *out.add_node();
  proto.set_op_type(std::string(op_name(node.op)));
  proto.set_domain(kDomain);
  proto.set_name(fmt::format("{}/{}/{}", program_name(node.program), out.node_size() - 1, op_name(node.op)));
  for (ValueId id : node.inputs) proto.add_input(id == kNone ? "" : graph.value(id).name);
  for (ValueId id : node.outputs) proto.add_output(graph.value(id).name);
  for (const auto& [key, value] : node.attributes.entries()) add_attribute(proto, std::string(attr_name(key)), value);
  add_text(proto, "program", std::string(program_name(node.program)));
  add_text(proto, "origin", node.origin);
  add_text(proto, "reason", node.reason);
  if (node.unit != kNone && node.unit < static_cast<int32_t>(graph.units.size())) add_text(proto, "unit", graph.units[node.unit].name);
  if (node.backward) add_attribute(proto, "backward", int64_t{1});
}

}  // namespace

void write_viewer_model(const Graph& graph, const std::string& path) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("zeroplan");
  auto* import = model.add_opset_import();
  import->set_domain(kDomain);
  import->set_version(1);
  model.add_opset_import()->set_version(kTargetOpset);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name("zeroplan");
  for (const Value& value : graph.values) describe(value, value.kind == ValueKind::computed ? *out.add_value_info() : *out.add_input());
  for (const Node& node : graph.nodes) add_node(graph, node, out);
  for (const auto& [name, id] : graph.outputs) describe(graph.value(id), *out.add_output());
  for (ValueId id : {graph.loss.sum, graph.loss.weight})
    if (id != kNone && graph.value(id).kind == ValueKind::computed) describe(graph.value(id), *out.add_output());
  OutputFile file(path);
  file.create();
  if (!model.SerializeToFileDescriptor(file.descriptor())) throw Error(fmt::format("cannot write '{}': the disk is full", path));
  file.commit();
}

}  // namespace zeroplan
