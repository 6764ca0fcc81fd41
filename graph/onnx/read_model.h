#pragma once
// From a file to plain data: limits, checks of ONNX itself, functions inlined, opset raised.
#include <string>

#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// Throws Error on anything that is no sound model. Copies no weights of kStripBytes or more.
// `with_digest` reads the whole file and the external data for OnnxModel::digest.
OnnxModel read_model(WeightFiles& files, bool with_digest);

}  // namespace zeroplan
