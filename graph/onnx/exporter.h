#pragma once
// Trained weights back into the model they came from.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// Fills `values` (layout and dtype of the parameter's source) with the trained parameter `index`.
using ParameterReader = std::function<void(int index, std::vector<std::byte>& values)>;

// Writes `model_path`'s graph with new weights to `path`: same nodes, names, order, opset and ties; an initializer that was split gets one
// initializer per parameter. External data goes beside `path` as <file>.data. At most one tensor is in memory at a time where weights are
// external. Atomic: temporary files, then rename; nothing is left behind on failure. Returns the
// files that it wrote.
std::vector<std::string> export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                  const ParameterReader& read);

// The graph as an ONNX file for viewers: internal ops and collectives in domain ai.zeroplan, no weights.
void write_viewer_model(const Graph& graph, const std::string& path);

}  // namespace zeroplan
