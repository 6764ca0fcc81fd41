#pragma once
// Attributes of nodes as the file has them; those of decoded nodes are DecodeContext's.
#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

#include "base/decimal.h"

namespace zeroplan {

inline const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

inline double float_attribute(const onnx::NodeProto& node, std::string_view name, double otherwise) {
  const onnx::AttributeProto* a = find_attribute(node, name);
  return a ? meant_decimal(static_cast<double>(a->f())) : otherwise;
}

inline int64_t int_attribute(const onnx::NodeProto& node, std::string_view name, int64_t otherwise) {
  const onnx::AttributeProto* a = find_attribute(node, name);
  return a ? a->i() : otherwise;
}

inline std::string text_attribute(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* a = find_attribute(node, name);
  return a ? a->s() : std::string();
}

}  // namespace zeroplan
