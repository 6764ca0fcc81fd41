#pragma once
#include <string>

#include "graph/onnx/stated_optimizer.h"

namespace zeroplan {

// What ONNX Runtime's optimizer_model.onnx does. Throws Error where the file is no model.
StatedOptimizer read_ort_optimizer(const std::string& path);

}  // namespace zeroplan
