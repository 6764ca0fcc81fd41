#pragma once
// From a file to plain data: limits, checks of ONNX itself, functions inlined, opset raised.
#include <string>

#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// Throws Error on anything that is no sound model. Copies no weights of kStripBytes or more.
OnnxModel read_model(WeightFiles& files);
// OnnxModel::digest alone: the bytes are hashed, ONNX's checks and conversions left out. Not read again where `files` knows it.
std::string read_digest(WeightFiles& files);

}  // namespace zeroplan
