#pragma once
// Trained weights back into the model they came from.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// Takes the values of parameter `index`, in layout and dtype of its source; the bytes are needed during the call only.
using TakeParameter = std::function<void(int index, std::span<const std::byte> values)>;
// Calls `take` once for each parameter, in any order.
using GiveParameters = std::function<void(const TakeParameter& take)>;

// Writes `model_path`'s graph with new weights to `path`: same nodes, names, order, opset and ties; an initializer that was split gets one
// initializer per parameter. External data goes beside `path` as <file>.data. At most one tensor is in memory at a time where weights are
// external. Atomic: temporary files, then rename; nothing is left behind on failure. Returns the files that it wrote.
std::vector<std::string> export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                                      const GiveParameters& give);

// The graph as an ONNX file for viewers: internal ops and collectives in domain ai.zeroplan, no weights.
void write_viewer_model(const Graph& graph, const std::string& path);

}  // namespace zeroplan
