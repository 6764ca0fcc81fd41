#pragma once
// Mutations of nodes: operators exchanged, attributes and edges changed, nodes copied and dropped.
#include <onnx/onnx_pb.h>

#include "tests/fuzz/libfuzzer/choice.h"

namespace zeroplan {

void change_nodes(Choice& choice, onnx::GraphProto& graph);

}  // namespace zeroplan
