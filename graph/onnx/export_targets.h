#pragma once
// The places of an exported model that trained values go to.
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "graph/ir/graph.h"

namespace zeroplan {

// A tensor that shows a parameter.
struct ExportTarget {
  onnx::TensorProto* tensor = nullptr;
  bool transposed = false;
  int64_t offset = -1;  // in the external data; -1: the values lie in the tensor itself
};

using ExportTargets = std::vector<std::vector<ExportTarget>>;  // by parameter; at least one each

// Finds the tensors of all parameters. `splits`: by parameter, the initializer that write_splits made; empty where it made none.
ExportTargets find_targets(onnx::GraphProto& graph, const std::string& model_path, const std::vector<Parameter>& parameters,
                           const std::vector<std::string>& splits);

// Gives every external tensor its place in `data`, in the order of the old offsets, points the model there, and copies those that no
// parameter fills. False: there are none, and `data` was not created.
bool write_external(onnx::ModelProto& model, const std::string& model_path, const std::string& path, ExportTargets& targets,
                    OutputFile& data);

// Puts a parameter's values, as stored (dtype and layout of the source), into its targets.
void write_parameter(const Parameter& parameter, std::span<const std::byte> values, const std::vector<ExportTarget>& targets,
                     OutputFile& data);

}  // namespace zeroplan
