#include "graph/onnx/exporter.h"

#include <onnx/onnx_pb.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "graph/onnx/export_splits.h"
#include "graph/onnx/export_values.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {
namespace {

onnx::ModelProto parse_whole(const std::string& path) {
  const MappedFile file(path);
  walk_model(file.bytes());  // limits
  if (file.bytes().size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error(fmt::format("model '{}' is larger than 2 GB, which cannot be written back; store its weights as external data", path));
  onnx::ModelProto model;
  google::protobuf::io::ArrayInputStream stream(file.bytes().data(), static_cast<int>(file.bytes().size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(2 * kMaxMessageDepth);
  if (!model.ParseFromCodedStream(&coded) || !model.has_graph())
    throw Error(fmt::format("model '{}' cannot be read again for the export", path));
  return model;
}

// Tensors that the parameters may live in, by the name of their value.
std::map<std::string, onnx::TensorProto*> find_tensors(onnx::GraphProto& graph) {
  std::map<std::string, onnx::TensorProto*> tensors;
  for (auto& tensor : *graph.mutable_initializer()) tensors.emplace(tensor.name(), &tensor);
  for (auto& node : *graph.mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1 || node.attribute_size() != 1 || !node.attribute(0).has_t()) continue;
    tensors.emplace(node.output(0), node.mutable_attribute(0)->mutable_t());
  }
  return tensors;
}

bool is_external(const onnx::TensorProto& tensor) { return tensor.data_location() == onnx::TensorProto::EXTERNAL; }

void set_values(onnx::TensorProto& tensor, std::vector<std::byte>& values) {
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.set_raw_data(values.data(), values.size());
}

// Initializer -> parameter whose values it gets. Split parameters have tensors of their own by now.
TrainedTensors trained_tensors(const std::vector<Parameter>& parameters) {
  TrainedTensors trained;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (!p.split_uses.empty()) continue;
    trained[p.source.initializer] = {static_cast<int>(i), false};
    for (const ParameterAlias& alias : p.aliases) trained[alias.initializer] = {static_cast<int>(i), alias.transposed};
  }
  return trained;
}

}  // namespace

std::vector<std::string> export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                                      const ParameterReader& read) {
  onnx::ModelProto model = parse_whole(model_path);
  const TrainedTensors trained = trained_tensors(parameters);
  const ParameterValues values(parameters, read);
  const std::map<std::string, onnx::TensorProto*> tensors = find_tensors(*model.mutable_graph());
  std::vector<std::byte> bytes;
  for (const auto& [name, target] : trained) {
    const auto tensor = tensors.find(name);
    if (tensor == tensors.end())
      throw Error(fmt::format("model '{}' has no initializer '{}' any more; was the file changed?", model_path, name));
    if (is_external(*tensor->second)) continue;
    values.get(target, bytes);
    set_values(*tensor->second, bytes);
  }
  write_splits(*model.mutable_graph(), model.ir_version(), parameters, values);
  OutputFile file(path), data(path + ".data");
  const bool external = write_external(model, model_path, path, trained, values, data);
  file.create();
  if (!model.SerializeToFileDescriptor(file.descriptor()))
    throw Error(fmt::format("cannot write '{}': the disk is full, or the model is larger than 2 GB", path));
  if (external) data.commit();
  file.commit();
  return external ? std::vector{path, data.path()} : std::vector{path};
}

}  // namespace zeroplan
