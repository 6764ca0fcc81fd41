#include "graph/onnx/export_values.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/locate.h"

namespace zeroplan {
namespace {

void transpose(const Shape& shape, int64_t size, std::vector<std::byte>& bytes) {
  std::vector<std::byte> out(bytes.size());
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j) std::memcpy(&out[(j * shape[0] + i) * size], &bytes[(i * shape[1] + j) * size], size);
  bytes.swap(out);
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

}  // namespace

void ParameterValues::get(const TrainedTensor& target, std::vector<std::byte>& bytes) const {
  const Parameter& p = parameters_[target.parameter];
  read_(target.parameter, bytes);
  if (static_cast<int64_t>(bytes.size()) != p.source.bytes)
    throw Error(fmt::format("parameter '{}' was given {} bytes for the export but needs {}", p.name, bytes.size(), p.source.bytes));
  if (target.transposed) transpose(p.shape, dtype_bytes(p.source.dtype), bytes);
}

bool write_external(onnx::ModelProto& model, const std::string& model_path, const std::string& path, const TrainedTensors& trained,
                    const ParameterValues& values, OutputFile& data) {
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
  std::vector<std::byte> bytes;
  for (auto& [tensor, located] : external) {
    data.pad_to(round_up(data.position(), alignment(located.source.offset)));
    const int64_t offset = data.position();
    const auto target = trained.find(tensor->name());
    if (target == trained.end()) {
      copy_range(files, located.source, data);
    } else {
      values.get(target->second, bytes);
      data.write(bytes.data(), static_cast<int64_t>(bytes.size()));
    }
    point_at(*tensor, location, offset, located.source.bytes);
  }
  return true;
}

}  // namespace zeroplan
