#include "graph/onnx/mixed_types.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/type_name.h"

namespace zeroplan {
namespace {

// Of a variadic input there is one entry, the last, for all.
const onnx::OpSchema::FormalParameter* formal_input(const onnx::OpSchema& schema, size_t place) {
  const auto& formals = schema.inputs();
  if (formals.empty() || (place >= formals.size() && formals.back().GetOption() != onnx::OpSchema::Variadic)) return nullptr;
  const auto& formal = formals[std::min(place, formals.size() - 1)];
  return formal.GetOption() == onnx::OpSchema::Variadic && !formal.GetIsHomogeneous() ? nullptr : &formal;
}

}  // namespace

std::string mixed_types(const OnnxNode& node, const std::vector<const Value*>& operands, int opset) {
  const onnx::OpSchema* schema = node.domain.empty() ? onnx::OpSchemaRegistry::Schema(node.op, opset, "") : nullptr;
  std::map<std::string, size_t> first;  // type parameter of the schema -> input
  for (size_t i = 0; schema && i < std::min(operands.size(), node.inputs.size()); ++i) {
    const auto* formal = operands[i] ? formal_input(*schema, i) : nullptr;
    if (!formal) continue;
    const size_t other = first.emplace(formal->GetTypeStr(), i).first->second;
    if (operands[other]->dtype != operands[i]->dtype)
      return fmt::format("its input '{}' is {}, but its input '{}' is {}; the two must have one type: export the model with a Cast",
                         node.inputs[other], type_name(operands[other]->dtype), node.inputs[i], type_name(operands[i]->dtype));
  }
  return "";
}

}  // namespace zeroplan
