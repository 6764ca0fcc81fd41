#pragma once
// An exported model works as in inference, whatever the file that was trained does.
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace zeroplan {

// Dropout and BatchNormalization nodes, also inside subgraphs and functions: no training mode, no outputs that only it has. Where something
// reads such an output, an Identity of the stored statistics gives it. Returns what was changed, one line each.
std::vector<std::string> set_inference_mode(onnx::ModelProto& model);

}  // namespace zeroplan
