#pragma once
// Tensors inside the branches of If and the bodies of Loop and Scan, each with a name that nothing else in the file has.
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph/onnx/wire_walk.h"

namespace zeroplan {

struct NestedTensor {
  TensorPath path;
  onnx::TensorProto* tensor = nullptr;
  std::string name;  // that of its value, with a number behind it where another value of the file is called so too
};

// Initializers, and tensors of Constant nodes; in file order.
std::vector<NestedTensor> nested_tensors(onnx::GraphProto& graph);
// Gives the values those names.
void rename_nested(onnx::GraphProto& graph);

}  // namespace zeroplan
