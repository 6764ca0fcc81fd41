#pragma once
// Where the contents of a tensor lie.
#include <onnx/onnx_pb.h>

#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// A tensor inside the model; `payload` is nullptr where its data lies in no one piece of the file.
OnnxTensor locate(const std::string& name, const onnx::TensorProto& tensor, const TensorPayload* payload);
// An external tensor. Throws Error naming it where its file, range or size is not sound.
OnnxTensor locate_external(WeightFiles& files, const onnx::TensorProto& tensor);

}  // namespace zeroplan
