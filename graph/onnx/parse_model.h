#pragma once
// The bytes of a walked model as a message.
#include <onnx/onnx_pb.h>

#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// Payloads that the walk stripped are missing. Throws Error where the bytes are no model.
onnx::ModelProto parse_model(const WireModel& wire);

}  // namespace zeroplan
