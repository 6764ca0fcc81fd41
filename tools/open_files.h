#pragma once
#include <string>

#include "graph/onnx/importer.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// The file as a model, or as a plan. Throws Error naming it; where it is the other of the two, with the command that takes it.
ModelFile open_model(const std::string& path);
Plan open_plan(const std::string& path);

}  // namespace zeroplan
