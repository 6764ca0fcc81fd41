#include "graph/onnx/proto_reads.h"

namespace zeroplan {

// Depth is bounded by kMaxMessageDepth.
void add_reads(const onnx::NodeProto& node, std::set<std::string>& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    if (node.op_type() == "Gradient") {  // names values by its attributes
      names.insert(attribute.strings().begin(), attribute.strings().end());
      names.insert(attribute.s());
    }
    if (attribute.has_g()) add_reads(attribute.g(), names);
    for (const auto& graph : attribute.graphs()) add_reads(graph, names);
  }
}

void add_reads(const onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const auto& node : graph.node()) add_reads(node, names);
  for (const auto& output : graph.output()) names.insert(output.name());
}

}  // namespace zeroplan
