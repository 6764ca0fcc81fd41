#pragma once
// Trained weights back into the model they came from.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/limits.h"

namespace zeroplan {

// Takes the values of parameter `index`, in the layout of its source and in wide_dtype of Parameter::dtype; the bytes are needed during the
// call only.
using TakeParameter = std::function<void(int index, std::span<const std::byte> values)>;
// Calls `take` once for each parameter, in any order; called export_rounds() times.
using GiveParameters = std::function<void(const TakeParameter& take)>;
// Twice where an initializer was split: first to see which parts differ from it.
int export_rounds(const std::vector<Parameter>& parameters);

struct ExportedFiles {
  std::vector<std::string> paths;   // the model's first
  std::vector<std::string> report;  // what is not as in the original: one line each
};

// Writes `model_path`'s graph with new weights to `path`: same nodes, names, order, opset, ties, types and places of external data, in
// inference mode. An initializer that was split gets one initializer per parameter whose values differ from it. At most one tensor is in
// memory at a time. Each file is temporary until all are written, then renamed; nothing is left behind on failure. A checkpoint's tensors
// are written into the model, or beside it where it would get larger than `largest`.
ExportedFiles export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                           const GiveParameters& give, int64_t largest = kProtobufLimit);

// The graph as an ONNX file for viewers: internal ops and collectives in domain ai.zeroplan, no weights.
void write_viewer_model(const Graph& graph, const std::string& path);

}  // namespace zeroplan
