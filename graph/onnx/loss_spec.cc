#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/loss.h"
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

std::string trimmed(std::string text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> arguments(const std::string& text) {
  std::vector<std::string> list;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    list.push_back(trimmed(text.substr(from, comma - from)));
    from = comma + 1;
  }
  return list;
}

int64_t number(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw Error(fmt::format("--loss: {}={} is not a number", key, text));
  return value;
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

void apply_argument(LossSpec& spec, const std::string& argument, int position) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) {
    if (position > 1 || argument.empty()) throw Error(fmt::format("--loss: '{}' is one argument too many", argument));
    (position == 0 ? spec.output : spec.labels) = argument;
    return;
  }
  const std::string key = trimmed(argument.substr(0, equals)), value = trimmed(argument.substr(equals + 1));
  const bool classes = spec.kind == LossSpec::Kind::softmax_cross_entropy;
  if (classes && key == "axis")
    spec.axis = number(key, value);
  else if (classes && key == "ignore_index")
    spec.ignore_index = number(key, value);
  else
    throw Error(fmt::format("--loss: unknown argument '{}'", key));
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
  const std::string text = trimmed(given);
  if (text.empty()) return default_loss(graph);
  const auto is_output = [&](const std::string& name) {
    return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const OnnxValueInfo& output) { return output.name == name; });
  };
  if (is_output(text)) return {LossSpec::Kind::output, text, ""};
  const size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')')
    throw Error(fmt::format("--loss '{}' is no output of the model; choose {}", text, as_options(list_loss_candidates(graph))));
  LossSpec spec;
  const std::string name = trimmed(text.substr(0, open));
  if (name == "softmax_cross_entropy")
    spec.kind = LossSpec::Kind::softmax_cross_entropy;
  else if (name == "mse")
    spec.kind = LossSpec::Kind::mse;
  else
    throw Error(fmt::format("--loss: '{}' is unknown or not supported yet; use softmax_cross_entropy or mse", name));
  spec.labels = spec.kind == LossSpec::Kind::mse ? "target" : "labels";
  const std::vector<std::string> list = arguments(text.substr(open + 1, text.size() - open - 2));
  for (size_t i = 0; i < list.size(); ++i) apply_argument(spec, list[i], static_cast<int>(i));
  if (!is_output(spec.output))
    throw Error(fmt::format("--loss: '{}' is no output of the model; choose {}", spec.output, as_options(list_loss_candidates(graph))));
  return spec;
}

}  // namespace zeroplan
