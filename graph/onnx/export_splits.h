#pragma once
// Initializers that training has split: one per parameter, and the nodes that read them.
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// Adds an initializer, still without values, for each parameter with split uses and rewires them, unless it is `joined`: still equal to
// what it was split from. An Identity that carried the parameter's name is replaced by it. Returns the initializers' names by parameter,
// empty where there is none.
std::vector<std::string> write_splits(onnx::ModelProto& model, const std::vector<Parameter>& parameters, const std::vector<bool>& joined);

}  // namespace zeroplan
