#pragma once
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/model.h"

namespace zeroplan {

// Two inputs of an operator of the default domain that must have one type, by ONNX's schema, and do not: a sentence with the names that
// the file has for them. Empty where there are none. `operands`: nullptr where left out.
std::string mixed_types(const OnnxNode& node, const std::vector<const Value*>& operands, int opset);

}  // namespace zeroplan
