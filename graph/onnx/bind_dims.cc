#include "graph/onnx/bind_dims.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/extent.h"

namespace zeroplan {
namespace {

// Input -> axis that the user named, -1 for none; absent where the user said nothing.
const int* stated_axis(const ImportOptions& options, const std::string& input) {
  const auto found = options.sample_axes.find(input);
  return found == options.sample_axes.end() ? nullptr : &found->second;
}

// The symbol on the stated axis, else on the first axis of most inputs; the first such where several tie.
std::string find_sample_symbol(const OnnxGraph& graph, const ImportOptions& options) {
  std::vector<std::pair<std::string, int>> counts;
  for (const OnnxValueInfo& input : graph.inputs) {
    const int* stated = stated_axis(options, input.name);
    const int axis = stated ? *stated : 0;
    if (axis < 0 || axis >= static_cast<int>(input.dims.size()) || input.dims[axis].symbol.empty()) continue;
    const std::string& symbol = input.dims[axis].symbol;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == symbol; });
    const int weight = stated ? 1000 : 1;
    if (found == counts.end())
      counts.emplace_back(symbol, weight);
    else
      found->second += weight;
  }
  const auto best = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == counts.end() ? "" : best->first;
}

int64_t find_baked_batch(const OnnxGraph& graph, const ImportOptions& options) {
  for (const OnnxValueInfo& input : graph.inputs) {
    const int* stated = stated_axis(options, input.name);
    const int axis = stated ? *stated : 0;
    if (axis >= 0 && axis < static_cast<int>(input.dims.size()) && input.dims[axis].symbol.empty()) return input.dims[axis].value;
  }
  return 0;
}

int sample_axis(const OnnxValueInfo& input, const BoundDims& bound, const ImportOptions& options) {
  if (const int* stated = stated_axis(options, input.name)) return *stated;
  if (bound.sample_symbol.empty()) return bound.baked_batch > 0 && !input.dims.empty() && input.dims[0].value == bound.baked_batch ? 0 : -1;
  for (size_t i = 0; i < input.dims.size(); ++i)
    if (input.dims[i].symbol == bound.sample_symbol) return static_cast<int>(i);
  return -1;
}

void choose_samples(const ImportOptions& options, BoundDims& out) {
  const int64_t wanted = options.samples;
  if (out.sample_symbol.empty()) {
    out.samples = out.baked_batch;
    if (wanted > 0 && out.baked_batch > 0 && wanted != out.baked_batch)
      out.problems.push_back(
          fmt::format("the file bakes {} per micro-batch in, but the batch gives {}; choose the batch and the number of "
                      "micro-batches so that each has {}",
                      counted(out.baked_batch, "sample"), wanted, out.baked_batch));
    return;
  }
  const auto stated = options.dims.find(out.sample_symbol);
  out.samples = stated != options.dims.end() ? stated->second : wanted;
  if (stated != options.dims.end() && wanted > 0 && wanted != stated->second)
    out.problems.push_back(
        fmt::format("dimension '{}' is the sample axis and is bound to {}, but the batch gives {} per micro-batch; state one of them",
                    out.sample_symbol, stated->second, counted(wanted, "sample")));
  if (out.samples > 0) out.symbols[out.sample_symbol] = out.samples;
}

// Samples that lie on axes of several symbols (unnamed dimensions have one each) are as many on all.
void bind_stated_axes(const OnnxGraph& graph, const ImportOptions& options, BoundDims& out) {
  if (out.sample_symbol.empty() || out.samples <= 0) return;
  for (const OnnxValueInfo& input : graph.inputs) {
    const int* axis = stated_axis(options, input.name);
    if (!axis || *axis < 0 || *axis >= static_cast<int>(input.dims.size()) || input.dims[*axis].symbol.empty()) continue;
    const std::string& symbol = input.dims[*axis].symbol;
    if (const int64_t size = out.symbols.emplace(symbol, out.samples).first->second; size != out.samples)
      out.problems.push_back(fmt::format("dimension '{}' of input {} is a sample axis and is bound to {}, but a micro-batch has {}", symbol,
                                         input.name, size, counted(out.samples, "sample")));
  }
}

std::string carriers(const OnnxGraph& graph, const std::string& symbol) {
  std::string list;
  for (const OnnxValueInfo& input : graph.inputs)
    for (const OnnxDim& dim : input.dims)
      if (dim.symbol == symbol) {
        list += (list.empty() ? "" : ", ") + input.name;
        break;
      }
  return list;
}

void report_unbound(const OnnxGraph& graph, BoundDims& out) {
  std::vector<std::string> seen;
  for (const OnnxValueInfo& input : graph.inputs)
    for (const OnnxDim& dim : input.dims) {
      if (dim.symbol.empty() || out.symbols.count(dim.symbol) || std::find(seen.begin(), seen.end(), dim.symbol) != seen.end()) continue;
      seen.push_back(dim.symbol);
      const bool sample = dim.symbol == out.sample_symbol;
      out.problems.push_back(fmt::format(
          "dimension '{}' of input {} is unbound; {}", dim.symbol, carriers(graph, dim.symbol),
          sample ? "it is the sample axis: state the batch, or --dim " + dim.symbol + "=N" : "state --dim " + dim.symbol + "=N"));
    }
}

std::vector<OnnxValueInfo>::const_iterator find_input(const OnnxGraph& graph, const std::string& name) {
  return std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](const OnnxValueInfo& input) { return input.name == name; });
}

void check_names(const OnnxGraph& graph, const ImportOptions& options, const std::string& labels, BoundDims& out) {
  for (const auto& [name, value] : options.dims) {
    if (carriers(graph, name).empty())
      out.problems.push_back(fmt::format("--dim {}={}: no input has a dimension of that name", name, value));
    else if (value <= 0)
      out.problems.push_back(fmt::format("--dim {}={}: a dimension must be positive", name, value));
  }
  for (const auto& [name, axis] : options.sample_axes) {
    const auto found = find_input(graph, name);
    if (found == graph.inputs.end() && !name.empty() && name == labels) continue;
    if (found == graph.inputs.end())
      out.problems.push_back(fmt::format("--sample-axis {}: the model has no such input", name));
    else if (axis >= static_cast<int>(found->dims.size()))
      out.problems.push_back(fmt::format("--sample-axis {}={}: the input has {} axes", name, axis, found->dims.size()));
  }
}

std::vector<std::string> dim_texts(const OnnxValueInfo& input) {
  std::vector<std::string> texts;
  for (const OnnxDim& dim : input.dims) texts.push_back(dim.symbol.empty() ? std::to_string(dim.value) : dim.symbol);
  return texts;
}

bool is_item(const std::string& name, const std::string& sequence) { return name.rfind(sequence + "[", 0) == 0 && name.back() == ']'; }

// The symbols of inputs that are constants are their sizes.
void bind_constants(const OnnxGraph& graph, const ImportOptions& options, BoundDims& out) {
  for (const auto& [name, value] : options.bind) {
    const auto meant = [&, wanted = name](const OnnxValueInfo& i) {
      return i.name == wanted || (i.item_type != 0 && is_item(wanted, i.name));
    };
    const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(), meant);
    if (input != graph.inputs.end() && input->item_type != 0) continue;
    if (input == graph.inputs.end()) {
      out.problems.push_back(fmt::format("--bind {}: the model has no such input", name));
      continue;
    }
    const std::optional<HostTensor> constant = bound_constant(*input, value);
    if (!constant) {
      out.problems.push_back(fmt::format("--bind {}: {} {} not fill the input, whose shape is [{}]", name, counted(value.count(), "value"),
                                         value.count() == 1 ? "does" : "do", fmt::join(dim_texts(*input), ",")));
      continue;
    }
    for (size_t i = 0; i < input->dims.size(); ++i)
      if (const OnnxDim& dim = input->dims[i]; !dim.symbol.empty()) out.symbols.emplace(dim.symbol, constant->shape()[i]);
  }
}

std::string what_is_no_tensor(const OnnxValueInfo& input) {
  if (input.item_type == 0) return fmt::format("input '{}' is not a tensor, which is not supported", input.name);
  return fmt::format("input '{0}' is a sequence, which must be known when the model is compiled; state its items: --bind {0}=…",
                     input.name);
}

void check_size(const BoundInput& input, BoundDims& out) {
  try {
    extent(input.shape);
  } catch (const Error& error) {
    out.problems.push_back(fmt::format("input '{}': {}", input.name, error.message()));
  }
}

// What data is read for. An optional that is not bound is nothing.
OnnxGraph without_constants(const OnnxGraph& graph, const ImportOptions& options) {
  OnnxGraph rest;
  for (const OnnxValueInfo& input : graph.inputs)
    if (!options.bind.count(input.name) && !input.optional && (input.item_type == 0 || !bound_items(input, options.bind)))
      rest.inputs.push_back(input);
  return rest;
}

}  // namespace

std::optional<HostTensor> bound_constant(const OnnxValueInfo& input, const HostTensor& value) {
  const auto fits = [&](const Shape& shape) {
    if (!input.ranked) return true;
    if (shape.size() != input.dims.size()) return false;
    for (size_t i = 0; i < shape.size(); ++i)
      if (input.dims[i].symbol.empty() && input.dims[i].value != shape[i]) return false;
    return true;
  };
  if (fits(value.shape())) return value;
  Shape shape;
  int64_t rest = value.count();  // for the one symbol that there may be
  for (const OnnxDim& dim : input.dims) rest /= dim.symbol.empty() ? std::max<int64_t>(dim.value, 1) : 1;
  for (const OnnxDim& dim : input.dims) shape.push_back(dim.symbol.empty() ? dim.value : std::exchange(rest, 1));
  if (value.shape().size() > 1 || elements(shape) != value.count()) return std::nullopt;
  return value.reshaped(shape);
}

std::optional<std::vector<HostTensor>> bound_items(const OnnxValueInfo& input, const std::map<std::string, HostTensor>& bind) {
  std::vector<HostTensor> items;
  for (auto item = bind.find(fmt::format("{}[0]", input.name)); item != bind.end();
       item = bind.find(fmt::format("{}[{}]", input.name, items.size())))
    items.push_back(item->second);
  const auto whole = bind.find(input.name);
  if (whole == bind.end() || !items.empty()) return items.empty() ? std::nullopt : std::optional(items);
  const HostTensor& all = whole->second;
  const int64_t count = all.shape().empty() ? 0 : all.shape()[0];
  for (int64_t i = 0; i < count; ++i) {
    HostTensor item(all.dtype(), Shape(all.shape().begin() + 1, all.shape().end()));
    std::copy_n(all.data() + i * item.bytes(), item.bytes(), item.mutable_data());
    items.push_back(std::move(item));
  }
  return items;
}

BoundDims bind_dims(const OnnxGraph& whole, const ImportOptions& options, const std::string& labels) {
  BoundDims out;
  bind_constants(whole, options, out);
  const OnnxGraph graph = without_constants(whole, options);
  check_names(graph, options, labels, out);
  out.sample_symbol = find_sample_symbol(graph, options);
  if (out.sample_symbol.empty()) out.baked_batch = find_baked_batch(graph, options);
  for (const auto& [name, value] : options.dims) out.symbols[name] = value;
  choose_samples(options, out);
  bind_stated_axes(graph, options, out);
  report_unbound(graph, out);
  for (const OnnxValueInfo& input : graph.inputs) {
    BoundInput bound{input.name, input.type, {}, sample_axis(input, out, options)};
    if (input.type == 0)
      out.problems.push_back(what_is_no_tensor(input));
    else if (!input.ranked)
      out.problems.push_back(fmt::format("input '{}' has no stated rank; export it with a shape", input.name));
    for (const OnnxDim& dim : input.dims) {
      const auto found = out.symbols.find(dim.symbol);
      bound.shape.push_back(dim.symbol.empty() ? dim.value : found == out.symbols.end() ? 1 : found->second);
    }
    check_size(bound, out);
    out.inputs.push_back(std::move(bound));
  }
  return out;
}

ModelPeek peek_dims(const OnnxGraph& graph, const std::map<std::string, int>& sample_axes, const std::map<std::string, HostTensor>& bind) {
  ImportOptions options;
  options.sample_axes = sample_axes;
  options.bind = bind;
  const BoundDims bound = bind_dims(graph, options);
  ModelPeek peek;
  peek.baked_batch = bound.baked_batch;
  peek.sample_symbol = bound.sample_symbol;
  for (const OnnxValueInfo& input : graph.inputs) {
    std::vector<std::string>& dims = peek.input_dims[input.name];
    dims = dim_texts(input);
    for (const OnnxDim& dim : input.dims) {
      const int* axis = stated_axis(options, input.name);
      const bool sample = dim.symbol == bound.sample_symbol || (axis && &dim - input.dims.data() == *axis);
      if (dim.symbol.empty() || sample) continue;
      std::vector<std::string>& inputs = peek.symbols[dim.symbol];
      if (std::find(inputs.begin(), inputs.end(), input.name) == inputs.end()) inputs.push_back(input.name);
    }
  }
  return peek;
}

}  // namespace zeroplan
