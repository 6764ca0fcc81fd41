#include "graph/onnx/exporter.h"

#include <onnx/onnx_pb.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "graph/onnx/export_splits.h"
#include "graph/onnx/export_targets.h"
#include "graph/onnx/forward_part.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/locate.h"
#include "graph/onnx/ort_artifacts.h"
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

// Tensors that a checkpoint beside the model keeps get their values, so that the exported file stands alone.
void take_in(onnx::ModelProto& model, WeightFiles& files, const std::set<std::string>& tensors) {
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (!tensors.count(tensor.name()) || tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    const OnnxTensor located = locate_external(files, tensor);
    std::string bytes(located.source.bytes, '\0');
    files.read(located.source.file, located.source.offset, located.source.bytes, bytes.data());
    tensor.clear_external_data();
    tensor.clear_data_location();
    tensor.set_raw_data(std::move(bytes));
  }
}

// The model that is written again: the whole file, but of training artifacts the forward alone, with the parameters as initializers.
onnx::ModelProto exported_model(const std::string& path) {
  onnx::ModelProto model = parse_whole(path);
  WeightFiles files(path);
  TrainingFacts facts;
  if (!add_artifacts(model, files, facts)) return model;
  drop_unread(*model.mutable_graph(), nullptr);
  keep_forward(model, nullptr, facts);
  std::set<std::string> tensors;
  for (const auto& [name, trained] : facts.roles) tensors.insert(name);
  take_in(model, files, tensors);
  return model;
}

}  // namespace

std::vector<std::string> export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                                      const GiveParameters& give) {
  onnx::ModelProto model = exported_model(export_file(model_path, parameters));
  const std::vector<std::string> splits = write_splits(model, parameters);
  ExportTargets targets = find_targets(*model.mutable_graph(), model_path, parameters, splits);
  OutputFile file(path), data(path + ".data");
  const bool external = write_external(model, model_path, path, targets, data);
  std::vector<bool> given(parameters.size());
  give([&](int index, std::span<const std::byte> values) {
    write_parameter(parameters.at(index), values, targets[index], data);
    given[index] = true;
  });
  for (size_t i = 0; i < given.size(); ++i) check(given[i], "every parameter is given for the export");
  file.create();
  if (!model.SerializeToFileDescriptor(file.descriptor()))
    throw Error(fmt::format("cannot write '{}': the disk is full, or the model is larger than 2 GB", path));
  if (external) data.commit();
  file.commit();
  return external ? std::vector{path, data.path()} : std::vector{path};
}

}  // namespace zeroplan
