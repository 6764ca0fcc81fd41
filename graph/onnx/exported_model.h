#pragma once
// The model that an export writes: the file's own messages, and beside them the tensors whose contents protobuf does not hold.
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/weights.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// Contents of one tensor: a parameter's, or copied from where they lie.
struct ExportContents {
  onnx::TensorProto* tensor = nullptr;
  int64_t bytes = 0;
  int field = kRawData;  // of TensorProto, where they lie in the model
  std::string file;      // where they lie before, as in StoredRun
  int64_t offset = 0;
  int parameter = kNone;    // that fills it; kNone: copied
  bool transposed = false;  // shows the parameter's transpose
  std::string location;     // of the external data that they belong to; empty: they lie in the model
  int data_file = -1;       // the file that they go to (export_layout.h); -1: the model
  int64_t place = 0;        // in that file
};

struct ExportedModel {
  onnx::ModelProto proto;
  std::map<std::string, onnx::TensorProto*> tensors;  // that a parameter may live in, by the name of the value
  std::vector<ExportContents> contents;               // of all tensors that are external, large or a parameter's
};

// Of training artifacts it is the forward alone, with the checkpoint's tensors as initializers.
ExportedModel read_exported(WeightFiles& files);

// Enters the parameters. `splits`: by parameter, the initializer that write_splits made; empty where it made none. Throws Error where a
// tensor is not there any more.
void bind_parameters(ExportedModel& model, const std::string& path, const std::vector<Parameter>& parameters,
                     const std::vector<std::string>& splits);

// Makes what came from a checkpoint external data at `location`, where the model would be larger than `largest` with it. False: it is not.
bool take_out(ExportedModel& model, const std::string& location, int64_t largest);

// Where each tensor lies in the graph.
std::map<const onnx::TensorProto*, TensorPath> tensor_paths(const onnx::GraphProto& graph);

}  // namespace zeroplan
