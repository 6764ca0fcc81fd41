#pragma once
// Initializers that training has split: one per parameter, and the nodes that read them.
#include <onnx/onnx_pb.h>

#include <vector>

#include "graph/onnx/export_values.h"

namespace zeroplan {

// Adds an initializer for each parameter with split uses and rewires them. An Identity that carried the parameter's name is replaced by it.
void write_splits(onnx::GraphProto& graph, int64_t ir_version, const std::vector<Parameter>& parameters, const ParameterValues& values);

}  // namespace zeroplan
