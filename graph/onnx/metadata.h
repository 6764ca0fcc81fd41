#pragma once
// Exporter metadata of a model as stored, and the plain form of a parsed model.
#include <onnx/onnx_pb.h>

#include "graph/onnx/model.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

ExporterMetadata read_metadata(const onnx::ModelProto& model);

// Where the tensors of the top-level graph lie: initializers and Constant nodes by name of the value.
using StoredTensors = std::map<std::string, OnnxTensor>;

// Plain form of the (inlined, converted) graph. Tensors named in `stored` are taken from there.
OnnxGraph plain_graph(const onnx::GraphProto& graph, const StoredTensors& stored);

}  // namespace zeroplan
