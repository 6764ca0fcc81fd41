#include "graph/onnx/function_body.h"

#include <onnx/defs/function.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/normalize.h"
#include "graph/onnx/plain_graph.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

const onnx::OpSchema* find_schema(const OnnxNode& node, int opset) {
  if (!node.domain.empty()) return nullptr;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op, opset, "");
  return schema ? schema : onnx::OpSchemaRegistry::Schema(node.op, "");
}

bool has_body(const onnx::OpSchema& schema) { return schema.HasFunction() || schema.HasContextDependentFunction(); }

onnx::TypeProto type_of(const Value* value) {
  onnx::TypeProto type;
  if (!value) return type;
  type.mutable_tensor_type()->set_elem_type(onnx_type(value->dtype));
  auto& shape = *type.mutable_tensor_type()->mutable_shape();
  for (const int64_t dim : value->shape) shape.add_dim()->set_dim_value(dim);
  return type;
}

// False: of a kind that no operator with a body has.
bool to_proto(const OnnxAttribute& from, onnx::AttributeProto& to) {
  to.set_name(from.name);
  to.set_type(static_cast<onnx::AttributeProto::AttributeType>(from.type));
  switch (from.type) {
    case onnx::AttributeProto::FLOAT: to.set_f(static_cast<float>(from.f)); return true;
    case onnx::AttributeProto::INT: to.set_i(from.i); return true;
    case onnx::AttributeProto::STRING: to.set_s(from.s); return true;
    case onnx::AttributeProto::FLOATS: to.mutable_floats()->Assign(from.floats.begin(), from.floats.end()); return true;
    case onnx::AttributeProto::INTS: to.mutable_ints()->Assign(from.ints.begin(), from.ints.end()); return true;
    case onnx::AttributeProto::STRINGS: to.mutable_strings()->Assign(from.strings.begin(), from.strings.end()); return true;
    case onnx::AttributeProto::TENSOR:
      if (from.tensor.bytes.empty()) return false;
      to.mutable_t()->set_data_type(from.tensor.type);
      to.mutable_t()->mutable_dims()->Assign(from.tensor.shape.begin(), from.tensor.shape.end());
      to.mutable_t()->set_raw_data(from.tensor.bytes);
      return true;
    default: return false;
  }
}

// With the schema's defaults filled in, as a body that refers to an attribute needs it.
bool to_proto(const OnnxNode& from, const onnx::OpSchema& schema, onnx::NodeProto& to) {
  to.set_op_type(from.op);
  to.set_name(from.label());
  for (const std::string& input : from.inputs) to.add_input(input);
  for (const std::string& output : from.outputs) to.add_output(output);
  for (const OnnxAttribute& attribute : from.attributes)
    if (!to_proto(attribute, *to.add_attribute())) return false;
  for (const auto& [name, attribute] : schema.attributes())
    if (attribute.default_value.type() != onnx::AttributeProto::UNDEFINED && !from.find(name.c_str()))
      *to.add_attribute() = attribute.default_value;
  return true;
}

bool find_function(const onnx::OpSchema& schema, const onnx::NodeProto& node, const std::vector<onnx::TypeProto>& types, int opset,
                   onnx::FunctionProto& function) {
  if (schema.HasFunction()) {
    const onnx::FunctionProto* body = schema.GetFunction(opset);
    if (!body) body = schema.GetFunction();
    if (body) function = *body;
    return body != nullptr;
  }
  const onnx::FunctionBodyBuildContextImpl context(node, types);
  return schema.BuildContextDependentFunction(context, function, opset) || schema.BuildContextDependentFunction(context, function);
}

int opset_of(const onnx::FunctionProto& function, int otherwise) {
  for (const auto& import : function.opset_import())
    if (import.domain().empty()) return static_cast<int>(import.version());
  return otherwise;
}

}  // namespace

bool has_function_body(const OnnxNode& node, int opset) {
  const onnx::OpSchema* schema = find_schema(node, opset);
  return schema && has_body(*schema);
}

std::optional<OnnxGraph> function_body(const OnnxNode& node, const std::vector<const Value*>& operands, int opset) {
  const onnx::OpSchema* schema = find_schema(node, opset);
  onnx::NodeProto call;
  if (!schema || !has_body(*schema) || !to_proto(node, *schema, call)) return {};
  std::vector<onnx::TypeProto> types;
  for (const Value* operand : operands) types.push_back(type_of(operand));
  onnx::FunctionProto function;
  if (!find_function(*schema, call, types, std::max(opset, schema->SinceVersion()), function)) return {};
  while (call.input_size() < function.input_size()) call.add_input();
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name("body");
  onnx::FunctionExpandHelper(call, function, *model.mutable_graph(), call.name() + "/");
  std::set<std::string> named;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!operands[i] || !named.insert(node.inputs[i]).second) continue;
    auto& input = *model.mutable_graph()->add_input();
    input.set_name(node.inputs[i]);
    *input.mutable_type() = types[i];
  }
  for (const std::string& output : node.outputs)
    if (!output.empty()) model.mutable_graph()->add_output()->set_name(output);
  const int version = opset_of(function, opset);
  model.add_opset_import()->set_version(version);
  try {
    raise_opset(model, version);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format("what its schema says that it is made of cannot be raised to a newer opset: {}", error.what()));
  }
  return plain_graph(model.graph(), {});
}

}  // namespace zeroplan
