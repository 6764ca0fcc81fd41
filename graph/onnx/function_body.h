#pragma once
// Operators that ONNX's schemas define by other operators.
#include <optional>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/model.h"

namespace zeroplan {

// Whether the schema of an operator of the default domain has a body.
bool has_function_body(const OnnxNode& node, int opset);
// The body for a node whose operands have the types of `operands` (nullptr: left out), as a graph that reads the node's inputs and
// computes its outputs, at opset kTargetOpset or above. None where there is no body for such operands.
std::optional<OnnxGraph> function_body(const OnnxNode& node, const std::vector<const Value*>& operands, int opset);

}  // namespace zeroplan
