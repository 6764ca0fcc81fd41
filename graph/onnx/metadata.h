#pragma once
// What the exporter wrote of a model beside its graph, as stored.
#include <onnx/onnx_pb.h>

#include "graph/onnx/model.h"

namespace zeroplan {

ExporterMetadata read_metadata(const onnx::ModelProto& model);

}  // namespace zeroplan
