#pragma once
// TrainingInfoProto: a training step stated beside the main graph.
#include <onnx/onnx_pb.h>

#include "graph/onnx/model.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// Joins the main graph and the nodes of the algorithm that its loss (Gradient's y) needs; what Gradient differentiates by is trained, and
// the optimizer is that of the update bindings. Throws Error where there are several algorithms, or one that trains no initializer.
void add_training_info(onnx::ModelProto& model, WireModel* wire, TrainingFacts& facts);

}  // namespace zeroplan
