// Writes what the fuzzer starts from: fuzz_seeds OUT FOLDER…. Each model.onnx below the folders as it is, without its weights where they
// are large; a model of ONNX's suites also with its inputs as constants, so that what depends on them is computed at import.
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "base/output_file.h"
#include "graph/onnx/tensor_data.h"

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 64 << 10;  // of a seed
constexpr size_t kLargeWeight = 512;     // bytes

template <typename Message>
std::optional<Message> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  Message message;
  return in && message.ParseFromIstream(&in) ? std::optional(std::move(message)) : std::nullopt;
}

// A model that `zeroplan new --no-weights` could have written: the shapes stay, the data does not.
void drop_weights(onnx::ModelProto& model) {
  bool dropped = false;
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    const bool external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
    if (!external && tensor.ByteSizeLong() < kLargeWeight) continue;
    for (const char* field : {"raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "external_data"})
      tensor.GetReflection()->ClearField(&tensor, tensor.GetDescriptor()->FindFieldByName(field));
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& location = *tensor.add_external_data();
    location.set_key("location");
    location.set_value("weights");
    dropped = true;
  }
  if (!dropped) return;
  auto& property = *model.add_metadata_props();
  property.set_key("ai.zeroplan.weights");
  property.set_value("absent");
}

bool is_floating_type(int type) {
  const std::optional<zeroplan::DType> dtype = zeroplan::graph_dtype(type, zeroplan::DType::f32);
  return dtype && zeroplan::is_floating(*dtype);
}

// The inputs of the first data set as initializers; `all`: floating-point ones too.
onnx::ModelProto with_constants(onnx::ModelProto model, const fs::path& set, bool all) {
  const auto inputs = model.graph().input();
  model.mutable_graph()->clear_input();
  for (int i = 0; i < inputs.size(); ++i) {
    std::optional<onnx::TensorProto> tensor = read<onnx::TensorProto>(set / ("input_" + std::to_string(i) + ".pb"));
    if (!tensor || !inputs[i].type().has_tensor_type() || (is_floating_type(tensor->data_type()) && !all)) {
      *model.mutable_graph()->add_input() = inputs[i];
      continue;
    }
    tensor->set_name(inputs[i].name());
    *model.mutable_graph()->add_initializer() = std::move(*tensor);
  }
  return model;
}

void write(const fs::path& out, const std::string& name, const onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() <= kMostBytes) zeroplan::write_file((out / name).string(), bytes);
}

void write_seeds(const fs::path& out, const fs::path& path) {
  std::optional<onnx::ModelProto> model = read<onnx::ModelProto>(path);
  if (!model) return;
  const std::string name = path.parent_path().filename().string() + "-" + path.stem().string();
  const fs::path set = path.parent_path() / "test_data_set_0";
  if (fs::is_directory(set)) {
    write(out, name + "-integers", with_constants(*model, set, false));
    write(out, name + "-constants", with_constants(*model, set, true));
  }
  drop_weights(*model);
  write(out, name, *model);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i)
    for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
      if (entry.path().extension() == ".onnx") write_seeds(argv[1], entry.path());
  return 0;
}
