#pragma once
// Graphs that hold their own backward: what they compute before it.
#include <onnx/onnx_pb.h>

#include "graph/onnx/model.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// Leaves out gradients, accumulators and optimizer steps with the outputs that depend on them, and all that only they read. A YieldOp is
// where ORTModule's forward ends: what it hands over becomes outputs. `wire`: payloads of attributes, which follow their nodes; null: none.
// Graphs without a backward, and graphs of nothing else, stay as they are.
void keep_forward(onnx::ModelProto& model, WireModel* wire, TrainingFacts& facts);

// Leaves out nodes that no output needs, and inputs and initializers that no node reads.
void drop_unread(onnx::GraphProto& graph, WireModel* wire);

}  // namespace zeroplan
