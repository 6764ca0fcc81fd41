#pragma once
// What ONNX's converter refuses or silently gets wrong is brought into the form of opset kTargetOpset before it runs.
#include <onnx/onnx_pb.h>

#include <vector>

#include "graph/onnx/normalize_domains.h"

namespace zeroplan {

// First: dimensions that the file says are unknown become unnamed.
void clear_unknown_dims(onnx::GraphProto& graph);
// Before ONNX's checker: operators that it does not know at this opset (it refuses the whole model) are set aside.
void set_unknown_aside(onnx::ModelProto& model, int opset);
// Before types are inferred for functions in an opset of their own: refuses operators whose inference, in the library, reads the type of an
// input that it may not know, behind an operator that is not its own or one whose inference fails. Elsewhere they are set aside.
void refuse_beside_functions(const onnx::ModelProto& model);
// After the checker, before the converter.
void rewrite_old_nodes(onnx::ModelProto& model, int opset);
// After the converter.
void restore_nodes(onnx::ModelProto& model);

// Both, with the conversion to kTargetOpset between them where `opset`, that of the model, is older.
void raise_opset(onnx::ModelProto& model, int opset);

// Rewrites one node; nodes that it needs in front of it go to `before`.
struct OldNode {
  onnx::NodeProto& node;
  int opset;
  std::vector<onnx::NodeProto> before;
  int& fresh;  // number of the next new name
};
using RewriteNode = void (*)(OldNode& old);
// nullptr: the converter can have it.
RewriteNode find_rewrite(const onnx::NodeProto& node, int opset);

}  // namespace zeroplan
