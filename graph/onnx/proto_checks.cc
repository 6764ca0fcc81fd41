#include "graph/onnx/proto_checks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

template <typename Stored, typename Field>
void append(std::string& out, const Field& field) {
  for (auto value : field) {
    const Stored stored = static_cast<Stored>(value);
    out.append(reinterpret_cast<const char*>(&stored), sizeof(Stored));
  }
}

void check_value(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return;
  const onnx::TensorShapeProto& shape = info.type().tensor_type().shape();
  if (shape.dim_size() > kMaxRank)
    throw Error(fmt::format("value '{}' has rank {}; at most {} is supported", info.name(), shape.dim_size(), kMaxRank));
  for (const auto& dim : shape.dim())
    if (dim.has_dim_value() && (dim.dim_value() < kUnknownDim || dim.dim_value() > kMaxDim))
      throw Error(fmt::format("value '{}' has a dimension of {}; the file is damaged", info.name(), dim.dim_value()));
}

void check_tensor(const onnx::TensorProto& tensor, const TensorPayload* payload, bool may_be_external) {
  const int64_t bytes = tensor_bytes(tensor.name(), tensor.data_type(), tensor_shape(tensor));
  if (tensor.has_segment())
    throw Error(fmt::format("tensor '{}' is stored in segments, which is not supported; save the model again", tensor.name()));
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    if (!may_be_external)
      throw Error(fmt::format("tensor '{}' is external but no initializer of the main graph; save it inside the model", tensor.name()));
    if (payload) throw Error(fmt::format("tensor '{}' is external and holds data as well; save the model again", tensor.name()));
    return;
  }
  if (tensor.data_type() == onnx::TensorProto::STRING) return;
  if (onnx_type_bits(tensor.data_type()) == 0)
    throw Error(fmt::format("tensor '{}' has the unknown element type {}", tensor.name(), tensor.data_type()));
  const int64_t stored = payload && payload->stripped ? payload->length : static_cast<int64_t>(tensor_contents(tensor).size());
  if (payload && payload->stripped && !tensor_contents(tensor).empty())
    throw Error(fmt::format("tensor '{}' holds its data twice; save the model again", tensor.name()));
  if (stored != bytes)
    throw Error(fmt::format("tensor '{}' of type {} and shape {} needs {} bytes but holds {}; the file is damaged", tensor.name(),
                            onnx_type_name(tensor.data_type()), to_string(tensor_shape(tensor)), bytes, stored));
}

// Depth is bounded by kMaxMessageDepth, which the wire walk has enforced.
void check_graph(const onnx::GraphProto& graph, const WireModel* wire, const TensorPath& outside);

TensorPath inside(TensorPath path, int index) {
  path.push_back(index);
  return path;
}

// ONNX's shape inference takes these as indices without a look: batch_dims of GatherND, axis of LayerNormalization.
void check_index(const onnx::NodeProto& node, const onnx::AttributeProto& attribute) {
  if (!is_default_domain(node.domain()) || (attribute.name() != "batch_dims" && attribute.name() != "axis")) return;
  const int64_t least = attribute.name() == "axis" ? -kMaxRank : 0;
  if (attribute.i() < least || attribute.i() > kMaxRank)
    throw Error(fmt::format("node '{}' ({}): {} is {}; it must be from {} to {}", node.name(), node.op_type(), attribute.name(),
                            attribute.i(), least, kMaxRank));
}

// `place`: of the node; `wire` is nullptr where no payload is located.
void check_attributes(const onnx::NodeProto& node, const WireModel* wire, const TensorPath& place) {
  for (int a = 0; a < node.attribute_size(); ++a) {
    const onnx::AttributeProto& attribute = node.attribute(a);
    const TensorPath path = inside(place, a);
    check_index(node, attribute);
    if (attribute.has_t()) check_tensor(attribute.t(), wire ? wire->find(path) : nullptr, false);
    for (const auto& tensor : attribute.tensors()) check_tensor(tensor, nullptr, false);
    if (attribute.has_sparse_tensor() || attribute.sparse_tensors_size())
      throw Error(fmt::format("node '{}': sparse tensors are not supported; store them densely", node.name()));
    if (attribute.has_g()) check_graph(attribute.g(), wire, path);
    for (const auto& sub : attribute.graphs()) check_graph(sub, nullptr, {});
  }
}

void check_graph(const onnx::GraphProto& graph, const WireModel* wire, const TensorPath& outside) {
  for (int i = 0; i < graph.initializer_size(); ++i)
    check_tensor(graph.initializer(i), wire ? wire->find(inside(outside, i)) : nullptr, wire && outside.empty());
  if (graph.sparse_initializer_size())
    throw Error(
        fmt::format("initializer '{}' is sparse, which is not supported; store it densely", graph.sparse_initializer(0).values().name()));
  for (const auto& info : graph.input()) check_value(info);
  for (const auto& info : graph.output()) check_value(info);
  for (const auto& info : graph.value_info()) check_value(info);
  for (int i = 0; i < graph.node_size(); ++i) check_attributes(graph.node(i), wire, inside(outside, i));
}

}  // namespace

Shape tensor_shape(const onnx::TensorProto& tensor) { return Shape(tensor.dims().begin(), tensor.dims().end()); }

bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

const onnx::AttributeProto* constant_attribute(const onnx::NodeProto& node) {
  const bool constant = node.op_type() == "Constant" && node.output_size() == 1 && node.attribute_size() == 1;
  return constant ? &node.attribute(0) : nullptr;
}

bool stores_tensor(const onnx::NodeProto& node) {
  const onnx::AttributeProto* value = constant_attribute(node);
  return value && value->has_t();
}

std::string tensor_contents(const onnx::TensorProto& tensor) {
  if (tensor.has_raw_data()) {
    if (tensor.float_data_size() || tensor.int32_data_size() || tensor.int64_data_size() || tensor.double_data_size() ||
        tensor.uint64_data_size())
      throw Error(fmt::format("tensor '{}' holds its data twice; save the model again", tensor.name()));
    return tensor.raw_data();
  }
  std::string out;
  switch (tensor.data_type()) {
    case kOnnxFloat:
    case kOnnxComplex64: append<float>(out, tensor.float_data()); break;
    case kOnnxDouble:
    case kOnnxComplex128: append<double>(out, tensor.double_data()); break;
    case kOnnxInt64: append<int64_t>(out, tensor.int64_data()); break;
    case kOnnxUint32: append<uint32_t>(out, tensor.uint64_data()); break;
    case kOnnxUint64: append<uint64_t>(out, tensor.uint64_data()); break;
    case kOnnxInt32: append<int32_t>(out, tensor.int32_data()); break;
    case kOnnxInt16:
    case kOnnxUint16:
    case kOnnxFloat16:
    case kOnnxBfloat16: append<uint16_t>(out, tensor.int32_data()); break;
    default:  // a byte each, which holds more than one of the shorter types
      if (onnx_type_bits(tensor.data_type()) > 0) append<uint8_t>(out, tensor.int32_data());
  }
  return out;
}

namespace {

// A node of the default domain; nullptr: there is none. Depth is bounded by kMaxMessageDepth.
const onnx::NodeProto* default_node(const onnx::GraphProto& graph) {
  for (const auto& node : graph.node()) {
    if (is_default_domain(node.domain())) return &node;
    for (const auto& attribute : node.attribute())
      if (const onnx::NodeProto* inner = attribute.has_g() ? default_node(attribute.g()) : nullptr) return inner;
  }
  return nullptr;
}

}  // namespace

int check_versions(const onnx::ModelProto& model) {
  if (!model.has_ir_version()) throw Error("the model states no IR version; export it again");
  if (model.ir_version() < kMinIrVersion || model.ir_version() > kMaxIrVersion)
    throw Error(fmt::format("the model has IR version {}; {} to {} are supported, so export it with one of them", model.ir_version(),
                            kMinIrVersion, kMaxIrVersion));
  int opset = -1;
  for (const auto& import : model.opset_import()) {
    if (!is_default_domain(import.domain())) continue;
    if (opset >= 0 && opset != import.version()) throw Error("the model imports two opsets of the default domain; export it again");
    if (import.version() < kMinOpset || import.version() > kMaxOpset)
      throw Error(fmt::format("the model uses opset {} of the default domain; {} to {} are supported, so export it with one of them",
                              import.version(), kMinOpset, kMaxOpset));
    opset = static_cast<int>(import.version());
  }
  if (model.opset_import().empty())
    throw Error(fmt::format("the model states no opset; export it with an opset from {} to {}", kMinOpset, kMaxOpset));
  if (const onnx::NodeProto* node = opset < 0 ? default_node(model.graph()) : nullptr)
    throw Error(
        fmt::format("the model states no opset of the default domain, which node '{}' ({}) is of; export it with an opset from {} to {}",
                    node->name(), node->op_type(), kMinOpset, kMaxOpset));
  return opset < 0 ? kTargetOpset : opset;
}

void check_tensors(const onnx::ModelProto& model, const WireModel& wire) {
  if (!model.has_graph()) throw Error("the model holds no graph; export it again");
  check_graph(model.graph(), &wire, {});
  for (const auto& function : model.functions())
    for (const auto& node : function.node()) check_attributes(node, nullptr, {});
  for (const auto& training : model.training_info()) {
    check_graph(training.initialization(), nullptr, {});
    check_graph(training.algorithm(), nullptr, {});
  }
}

}  // namespace zeroplan
