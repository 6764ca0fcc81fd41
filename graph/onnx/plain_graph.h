#pragma once
// The plain form of a parsed graph.
#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "graph/onnx/model.h"

namespace zeroplan {

// Where tensors lie in the files of a model: initializers and Constant nodes, those of graphs inside nodes too, by name of the value.
using StoredTensors = std::map<std::string, OnnxTensor>;

// Of the (inlined, converted) graph. Tensors named in `stored` are taken from there.
OnnxGraph plain_graph(const onnx::GraphProto& graph, const StoredTensors& stored);

}  // namespace zeroplan
