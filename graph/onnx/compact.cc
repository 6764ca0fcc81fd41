#include "graph/onnx/compact.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/onnx/sample_mask.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

std::vector<bool> live_values(const Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (ValueId id : {graph.loss.sum, graph.loss.weight})
    if (id != kNone) live[id] = true;
  for (const auto& [name, id] : graph.outputs) live[id] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool needed = std::any_of(node->outputs.begin(), node->outputs.end(), [&](ValueId id) { return live[id]; });
    if (!needed) continue;
    for (ValueId id : node->outputs) live[id] = true;
    for (ValueId id : node->inputs)
      if (id != kNone) live[id] = true;
  }
  for (const BatchStatistics& s : graph.statistics)
    if (live[s.mean]) live[s.running_mean] = live[s.running_variance] = true;
  return live;
}

// Gradients flow through floating-point values alone.
bool carries(const Graph& graph, ValueId id) {
  return id != kNone && is_floating(graph.value(id).dtype) && graph.value(id).kind != ValueKind::constant;
}

std::vector<bool> gradient_reached(const Graph& graph) {
  std::vector<bool> reached(graph.values.size(), false);
  reached[graph.loss.sum] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(), [&](ValueId id) { return reached[id]; })) continue;
    for (ValueId id : node->inputs)
      if (carries(graph, id)) reached[id] = true;
  }
  return reached;
}

std::vector<bool> depends_on_trainable(const Graph& graph) {
  std::vector<bool> depends(graph.values.size(), false);
  for (size_t i = 0; i < graph.values.size(); ++i)
    depends[i] = graph.values[i].kind == ValueKind::parameter && graph.parameters[graph.values[i].parameter].trainable;
  for (const Node& node : graph.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return id != kNone && depends[id]; });
    for (ValueId id : node.outputs) depends[id] = any && is_floating(graph.value(id).dtype);
  }
  return depends;
}

// The input whose elements `id` shows, unchanged but for their order and for samples that do not count; kNone where there is none.
ValueId source_input(const Graph& graph, ValueId id, ValueId mask) {
  while (id != kNone && graph.value(id).kind == ValueKind::computed) {
    const Node& node = graph.nodes[graph.value(id).producer];
    const bool same = op_class(node.op) == OpClass::view || node.op == OpKind::copy ||
                      (node.op == OpKind::cast && !is_floating(graph.value(node.inputs[0]).dtype));
    const bool chosen = node.op == OpKind::where && is_sample_mask(graph, node.inputs[0], mask);
    id = same ? node.inputs[0] : chosen ? node.inputs[1] : kNone;
  }
  return id != kNone && graph.value(id).kind == ValueKind::input ? id : kNone;
}

}  // namespace

std::vector<int> compact(Graph& graph, const std::map<ValueId, std::string>& names) {
  const std::vector<bool> live = live_values(graph);
  Graph out;
  std::vector<ValueId> moved(graph.values.size(), kNone);
  std::vector<int> parameters(graph.parameters.size(), -1);
  const auto move = [&](ValueId id) {
    Value value = std::move(graph.values[id]);
    const auto name = names.find(id);
    if (name != names.end()) value.name = name->second;
    moved[id] = out.add_value(std::move(value));
  };
  for (ValueId id : graph.inputs) {
    if (!live[id]) continue;
    move(id);
    out.inputs.push_back(moved[id]);
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!live[i] || graph.values[i].kind != ValueKind::parameter) continue;
    parameters[graph.values[i].parameter] = 1;
    move(static_cast<ValueId>(i));
  }
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    if (parameters[i] < 0) continue;
    parameters[i] = static_cast<int>(out.parameters.size());
    out.parameters.push_back(graph.parameters[i]);
  }
  for (Value& value : out.values)
    if (value.kind == ValueKind::parameter) value.parameter = parameters[value.parameter];
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (live[i] && moved[i] == kNone) move(static_cast<ValueId>(i));
  for (Node& node : graph.nodes) {
    if (!live[node.outputs[0]]) continue;
    for (ValueId& id : node.inputs)
      if (id != kNone) id = moved[id];
    for (ValueId& id : node.outputs) id = moved[id];
    out.add_node(std::move(node));
  }
  out.loss = graph.loss;
  for (ValueId* id : {&out.loss.sum, &out.loss.weight})
    if (*id != kNone) *id = moved[*id];
  for (const auto& [name, id] : graph.outputs) out.outputs[name] = moved[id];
  for (BatchStatistics s : graph.statistics) {
    if (moved[s.mean] == kNone) continue;
    for (ValueId* id : {&s.mean, &s.variance, &s.running_mean, &s.running_variance}) *id = moved[*id];
    out.statistics.push_back(s);
  }
  out.reindex();
  graph = std::move(out);
  return parameters;
}

std::vector<std::string> check_gradients(Graph& graph, std::vector<std::string>& report) {
  const std::vector<bool> reached = gradient_reached(graph);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].kind != ValueKind::parameter || reached[i]) continue;
    Parameter& p = graph.parameters[graph.values[i].parameter];
    if (!p.trainable) continue;
    p.trainable = false;
    p.role_reason = "no gradient path to the loss";
    report.push_back(fmt::format("'{}' has no gradient path to the loss and is kept as it is", p.name));
  }
  const std::vector<bool> depends = depends_on_trainable(graph);
  std::vector<std::string> problems;
  for (const Node& node : graph.nodes) {
    const bool on_path = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return reached[id] && depends[id]; });
    if (on_path && !op_def(node.op).vjp)
      problems.push_back(
          fmt::format("node '{}' ({}) lies between a trained parameter and the loss and has no gradient; freeze what is before it, or "
                      "export without it",
                      node.origin, op_name(node.op)));
  }
  return problems;
}

void find_limits(const Graph& graph, const LabelRange& labels, std::vector<ImportedInput>& inputs) {
  const auto masks = std::find_if(inputs.begin(), inputs.end(), [](const ImportedInput& input) { return input.mask; });
  const ValueId mask = masks == inputs.end() ? kNone : masks->value;
  const auto input_of = [&](ValueId id) {
    const ValueId source = source_input(graph, id, mask);
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const ImportedInput& input) { return input.value == source; });
    return source == kNone || found == inputs.end() ? nullptr : &*found;
  };
  const auto lower = [](ImportedInput& input, int64_t limit) { input.limit = input.limit < 0 ? limit : std::min(input.limit, limit); };
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::cross_entropy) continue;
    ImportedInput* input = input_of(node.inputs[1]);
    if (!input) continue;
    lower(*input, graph.value(node.inputs[0]).shape[1]);
    input->label = true;
    const int64_t ignored = node.attributes.get_int(Attr::ignore_index, kNoLabel);
    input->has_ignored = ignored != kNoLabel;
    if (input->has_ignored) input->ignored = ignored;
  }
  for (ImportedInput& input : inputs) {
    if (labels.classes == 0 || input.name != labels.input) continue;
    lower(input, labels.classes);
    input.label = input.has_ignored = true;
    input.ignored = labels.ignored;
  }
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::gather) continue;
    ImportedInput* input = input_of(node.inputs[1]);
    if (!input) continue;
    lower(*input, graph.value(node.inputs[0]).shape[node.attributes.get_int(Attr::axis)]);
    input->has_ignored = false;  // an ignored label is no row of a table
  }
}

}  // namespace zeroplan
