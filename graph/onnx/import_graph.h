#pragma once
// A file that was read, made into a graph with a loss. The importer's own; ModelFile is the way in.
#include <string>
#include <vector>

#include "graph/onnx/importer.h"
#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// Throws ErrorList with all problems of the model.
ImportedModel import_graph(const OnnxModel& model, WeightFiles& files, const ImportOptions& options);
// As far as it goes; what stands in the way is in `problems`.
ImportedModel inspect_graph(const OnnxModel& model, WeightFiles& files, const ImportOptions& options, std::vector<std::string>& problems);

}  // namespace zeroplan
