#pragma once
// Models that hold more, or less, than forward and initializers: made into such.
#include <onnx/onnx_pb.h>

#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// Takes training information, training artifacts and a backward into account. `wire` follows the nodes and tensors; null: not needed.
TrainingFacts reduce_to_forward(onnx::ModelProto& model, WireModel* wire, WeightFiles& files);

}  // namespace zeroplan
