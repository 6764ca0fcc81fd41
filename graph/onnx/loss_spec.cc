#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "graph/onnx/loss.h"
#include "graph/onnx/loss_text.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

bool is_float(const OnnxValueInfo& info) {
  const std::optional<DType> dtype = graph_dtype(info.type, DType::f32);
  return dtype && is_floating(*dtype);
}

bool is_scalar(const OnnxValueInfo& info) {
  return info.ranked &&
         std::all_of(info.dims.begin(), info.dims.end(), [](const OnnxDim& dim) { return dim.symbol.empty() && dim.value == 1; });
}

// The candidates as they are typed.
std::string as_options(const std::vector<std::string>& candidates) {
  std::vector<std::string> options;
  for (const std::string& candidate : candidates) options.push_back(fmt::format("--loss '{}'", candidate));
  return options.empty() ? "an output of floating-point values" : fmt::format("{}", fmt::join(options, " or "));
}

LossSpec default_loss(const OnnxGraph& graph) {
  std::vector<std::string> scalars;
  for (const OnnxValueInfo& output : graph.outputs) {
    if (is_float(output) && output.name == "loss") return {LossSpec::Kind::output, output.name, ""};
    if (is_float(output) && is_scalar(output)) scalars.push_back(output.name);
  }
  if (scalars.size() == 1) return {LossSpec::Kind::output, scalars[0], ""};
  throw Error(fmt::format("the model {}; state which, for example {}",
                          scalars.empty() ? "has no scalar output that could be the loss" : "has several scalar outputs",
                          as_options(list_loss_candidates(graph))));
}

}  // namespace

std::vector<std::string> list_loss_candidates(const OnnxGraph& graph) {
  std::vector<std::string> list;
  for (const OnnxValueInfo& output : graph.outputs)
    if (is_float(output) && is_scalar(output)) list.push_back(output.name);
  for (const OnnxValueInfo& output : graph.outputs) {
    if (!is_float(output) || is_scalar(output)) continue;
    list.push_back(fmt::format("softmax_cross_entropy({}, labels)", output.name));
    list.push_back(fmt::format("mse({}, target)", output.name));
  }
  return list;
}

LossSpec parse_loss(const std::string& given, const OnnxGraph& graph) {
  if (given.find_first_not_of(" \t") == std::string::npos) return default_loss(graph);
  std::vector<std::string> outputs;
  for (const OnnxValueInfo& output : graph.outputs) outputs.push_back(output.name);
  LossSpec spec = read_loss_text(given, outputs);
  if (std::find(outputs.begin(), outputs.end(), spec.output) != outputs.end()) return spec;
  if (outputs.empty())
    throw Error(fmt::format("--loss: '{}' is no output of the model, which has none; export it with outputs", spec.output));
  const std::string close = nearest(spec.output, outputs);
  const std::string ways =
      spec.kind == LossSpec::Kind::output ? as_options(list_loss_candidates(graph)) : fmt::format("{}", fmt::join(outputs, " or "));
  throw Error(fmt::format("--loss: '{}' is no output of the model; {}", spec.output,
                          close.empty() ? "choose " + ways : fmt::format("did you mean '{}'? There is {}", close, ways)));
}

}  // namespace zeroplan
