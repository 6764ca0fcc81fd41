#pragma once
// Checks of a parsed model that come before ONNX's own code sees it, which throw Error, and what they and others ask of its parts.
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "base/shape.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// IR version and opset of the default domain, which is returned (a model of other domains alone: kTargetOpset).
int check_versions(const onnx::ModelProto& model);
// Dims, data and sizes of every tensor, ranks of every stated shape, in all graphs and functions; external tensors may stand in the
// top-level graph alone. Payloads that were stripped are taken from `wire`.
void check_tensors(const onnx::ModelProto& model, const WireModel& wire);
// Local functions: no cycle, call depth and nodes after inlining below the limits.
void check_functions(const onnx::ModelProto& model);
// Bytes of the contents of a tensor that holds them itself, little-endian; throws where they are not stored as its type asks.
std::string tensor_contents(const onnx::TensorProto& tensor);
Shape tensor_shape(const onnx::TensorProto& tensor);
bool is_default_domain(const std::string& domain);
// The attribute of a Constant node that says its value; nullptr: it is no such node.
const onnx::AttributeProto* constant_attribute(const onnx::NodeProto& node);
// A Constant node whose value is a tensor; then attribute 0 holds it.
bool stores_tensor(const onnx::NodeProto& node);

}  // namespace zeroplan
