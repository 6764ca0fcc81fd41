#include "graph/onnx/export_targets.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/locate.h"
#include "graph/onnx/nested_tensors.h"

namespace zeroplan {
namespace {

std::vector<std::byte> transposed(const Shape& shape, int64_t size, std::span<const std::byte> bytes) {
  std::vector<std::byte> out(bytes.size());
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j) std::memcpy(&out[(j * shape[0] + i) * size], &bytes[(i * shape[1] + j) * size], size);
  return out;
}

// The alignment that the exporter gave the tensor, up to a page.
int64_t alignment(int64_t offset) {
  int64_t align = 4096;
  while (offset % align != 0) align /= 2;
  return align;
}

void copy_range(WeightFiles& files, const WeightSource& source, OutputFile& data) {
  std::vector<std::byte> block(std::min<int64_t>(source.bytes, int64_t{1} << 22));
  for (int64_t done = 0; done < source.bytes; done += static_cast<int64_t>(block.size())) {
    const int64_t n = std::min<int64_t>(static_cast<int64_t>(block.size()), source.bytes - done);
    files.read(source.file, source.offset + done, n, block.data());
    data.write(block.data(), n);
  }
}

void point_at(onnx::TensorProto& tensor, const std::string& location, int64_t offset, int64_t length) {
  tensor.clear_external_data();
  const auto add = [&](const char* key, const std::string& value) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  add("offset", std::to_string(offset));
  add("length", std::to_string(length));
}

// Tensors that parameters may live in, by the name of their value.
std::map<std::string, onnx::TensorProto*> find_tensors(onnx::GraphProto& graph) {
  std::map<std::string, onnx::TensorProto*> tensors;
  for (auto& tensor : *graph.mutable_initializer()) tensors.emplace(tensor.name(), &tensor);
  for (auto& node : *graph.mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1 || node.attribute_size() != 1 || !node.attribute(0).has_t()) continue;
    tensors.emplace(node.output(0), node.mutable_attribute(0)->mutable_t());
  }
  for (const NestedTensor& nested : nested_tensors(graph)) tensors.emplace(nested.name, nested.tensor);
  return tensors;
}

void set_values(onnx::TensorProto& tensor, std::span<const std::byte> values) {
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.set_raw_data(values.data(), values.size());
}

ExportTarget* find_target(ExportTargets& targets, const onnx::TensorProto* tensor) {
  for (auto& own : targets)
    for (ExportTarget& target : own)
      if (target.tensor == tensor) return &target;
  return nullptr;
}

}  // namespace

ExportTargets find_targets(onnx::GraphProto& graph, const std::string& model_path, const std::vector<Parameter>& parameters,
                           const std::vector<std::string>& splits) {
  const std::map<std::string, onnx::TensorProto*> tensors = find_tensors(graph);
  ExportTargets targets(parameters.size());
  const auto add = [&](size_t parameter, const std::string& name, bool transposed) {
    const auto tensor = tensors.find(name);
    if (tensor == tensors.end())
      throw Error(fmt::format("model '{}' has no initializer '{}' any more; was the file changed?", model_path, name));
    targets[parameter].push_back({tensor->second, transposed});
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    add(i, splits[i].empty() ? parameters[i].source.initializer : splits[i], false);
    if (!splits[i].empty()) continue;
    for (const ParameterAlias& alias : parameters[i].aliases) add(i, alias.initializer, alias.transposed);
  }
  return targets;
}

bool write_external(onnx::ModelProto& model, const std::string& model_path, const std::string& path, ExportTargets& targets,
                    OutputFile& data) {
  WeightFiles files(model_path);
  std::vector<std::pair<onnx::TensorProto*, OnnxTensor>> external;
  for (auto& tensor : *model.mutable_graph()->mutable_initializer())
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) external.emplace_back(&tensor, locate_external(files, tensor));
  if (external.empty()) return false;
  std::stable_sort(external.begin(), external.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.source.file, a.second.source.offset) < std::tie(b.second.source.file, b.second.source.offset);
  });
  const size_t slash = path.rfind('/');
  const std::string location = (slash == std::string::npos ? path : path.substr(slash + 1)) + ".data";
  data.create();
  for (auto& [tensor, located] : external) {
    data.pad_to(round_up(data.position(), alignment(located.source.offset)));
    const int64_t offset = data.position();
    if (ExportTarget* target = find_target(targets, tensor)) {
      target->offset = offset;
      data.pad_to(offset + located.source.bytes);
    } else {
      copy_range(files, located.source, data);
    }
    point_at(*tensor, location, offset, located.source.bytes);
  }
  return true;
}

void write_parameter(const Parameter& p, std::span<const std::byte> values, const std::vector<ExportTarget>& targets, OutputFile& data) {
  if (static_cast<int64_t>(values.size()) != p.source.bytes)
    throw Error(fmt::format("parameter '{}' was given {} bytes for the export but needs {}", p.name, values.size(), p.source.bytes));
  for (const ExportTarget& target : targets) {
    std::vector<std::byte> turned;
    if (target.transposed) turned = transposed(p.shape, dtype_bytes(p.source.dtype), values);
    const std::span<const std::byte> bytes = target.transposed ? turned : values;
    if (target.offset < 0)
      set_values(*target.tensor, bytes);
    else
      data.write_at(target.offset, bytes.data(), static_cast<int64_t>(bytes.size()));
  }
}

}  // namespace zeroplan
