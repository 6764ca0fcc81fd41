#pragma once
// The optimizer of a TrainingInfoProto.
#include <onnx/onnx_pb.h>

#include <set>
#include <string>

#include "graph/onnx/stated_optimizer.h"

namespace zeroplan {

// What the update bindings of `training` do to the tensors `trained`; constants are looked up in `model` too. One optimizer for all.
StatedOptimizer read_update(const onnx::ModelProto& model, const onnx::TrainingInfoProto& training, const std::set<std::string>& trained);

}  // namespace zeroplan
