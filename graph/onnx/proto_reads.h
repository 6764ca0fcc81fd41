#pragma once
// Names of the values that nodes of a parsed model read.
#include <onnx/onnx_pb.h>

#include <set>
#include <string>

namespace zeroplan {

// Inputs, what subgraphs read and give, and the values that a Gradient names. Names of the subgraphs' own are among them.
void add_reads(const onnx::NodeProto& node, std::set<std::string>& names);
// The same of all nodes, and the outputs.
void add_reads(const onnx::GraphProto& graph, std::set<std::string>& names);

}  // namespace zeroplan
