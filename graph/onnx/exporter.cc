#include "graph/onnx/exporter.h"

#include <onnx/onnx_pb.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "graph/onnx/export_splits.h"
#include "graph/onnx/export_targets.h"
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

}  // namespace

std::vector<std::string> export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                                      const GiveParameters& give) {
  onnx::ModelProto model = parse_whole(model_path);
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
