#include "graph/onnx/locate.h"

#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/external_data.h"
#include "graph/onnx/proto_checks.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

void set_source(OnnxTensor& tensor, const std::string& file, int64_t offset, int64_t bytes) {
  const StoredType type = stored_type(tensor.type).value_or(StoredType::f32);
  tensor.source = {{tensor.name, file, offset, bytes, type}, {}};
}

}  // namespace

OnnxTensor locate(const std::string& name, const onnx::TensorProto& tensor, const TensorPayload* payload) {
  OnnxTensor out;
  out.name = name;
  out.type = tensor.data_type();
  out.shape = tensor_shape(tensor);
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) out.bytes = tensor_contents(tensor);
  if (!payload) return out;
  out.in_file = true;
  set_source(out, "", payload->offset, payload->length);
  out.source.varints = payload->field == kInt32Data;
  return out;
}

namespace {

int64_t external_size(WeightFiles& files, const std::string& name, const ExternalRange& range) {
  if (files.absent()) return std::numeric_limits<int64_t>::max();
  try {
    return files.size(range.location);
  } catch (const Error& error) {
    throw Error(fmt::format("initializer '{}': {}", name, error.message()));
  }
}

}  // namespace

OnnxTensor locate_external(WeightFiles& files, const onnx::TensorProto& tensor) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& entry : tensor.external_data()) entries.emplace_back(entry.key(), entry.value());
  const ExternalRange range = parse_external(tensor.name(), entries);
  OnnxTensor out = locate(tensor.name(), tensor, nullptr);
  const int64_t bytes = tensor_bytes(tensor.name(), out.type, out.shape);
  const int64_t size = external_size(files, tensor.name(), range);
  if (onnx_type_bits(out.type) == 0)
    throw Error(fmt::format("initializer '{}': a {} tensor cannot be external", tensor.name(), onnx_type_name(out.type)));
  if (range.length >= 0 && range.length != bytes)
    throw Error(fmt::format("initializer '{}': its external data states {} bytes but shape {} needs {}", tensor.name(), range.length,
                            to_string(out.shape), bytes));
  if (range.offset > size || bytes > size - range.offset)
    throw Error(fmt::format("initializer '{}': {} bytes at offset {} lie outside '{}' of {} bytes", tensor.name(), bytes, range.offset,
                            range.location, size));
  out.in_file = bytes > 0;
  set_source(out, range.location, range.offset, bytes);
  return out;
}

}  // namespace zeroplan
