#include "graph/onnx/forward_part.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "graph/onnx/proto_reads.h"

namespace zeroplan {
namespace {

using Names = std::set<std::string>;

bool is_microsoft(const onnx::NodeProto& node) { return node.domain() == "com.microsoft"; }

bool is_yield(const onnx::NodeProto& node) { return is_microsoft(node) && node.op_type() == "YieldOp"; }

// Nodes that only a training step has: gradients (ReluGrad, SoftmaxGrad_13, BiasGeluGrad_dX), accumulators, optimizers.
bool is_backward(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  return is_microsoft(node) && (op == "YieldOp" || op.ends_with("Grad") || op.find("Grad_") != std::string::npos ||
                                op.starts_with("InPlaceAccumulator") || op.ends_with("Optimizer") || op.ends_with("OptimizerV2"));
}

bool reads_any(const onnx::NodeProto& node, const Names& names) {
  Names reads;
  add_reads(node, reads);
  return std::any_of(reads.begin(), reads.end(), [&](const std::string& name) { return !name.empty() && names.count(name) > 0; });
}

// Values that the backward computes.
Names backward_values(const onnx::GraphProto& graph) {
  Names values;
  for (const auto& node : graph.node())
    if (is_backward(node) || reads_any(node, values))
      for (const std::string& output : node.output())
        if (!output.empty()) values.insert(output);
  return values;
}

const onnx::ValueInfoProto* find_info(const onnx::GraphProto& graph, const std::string& name) {
  for (const auto* list : {&graph.output(), &graph.value_info(), &graph.input()})
    for (const auto& info : *list)
      if (info.name() == name) return &info;
  return nullptr;
}

// What the forward hands to the backward, in order, in front of the graph's own outputs.
void add_yielded(onnx::GraphProto& graph) {
  std::vector<onnx::ValueInfoProto> outputs;
  for (const auto& node : graph.node()) {
    if (!is_yield(node)) continue;
    for (const std::string& name : node.input()) {
      const onnx::ValueInfoProto* known = find_info(graph, name);
      if (!known || !known->type().tensor_type().has_shape())
        throw Error(
            fmt::format("YieldOp '{}': the file does not state type and shape of '{}', which the forward returns; run ONNX's shape "
                        "inference over the model",
                        node.name(), name));
      outputs.push_back(*known);
    }
  }
  Names listed;
  for (const auto& info : outputs) listed.insert(info.name());
  for (const auto& info : graph.output())
    if (listed.insert(info.name()).second) outputs.push_back(info);
  graph.clear_output();
  for (auto& info : outputs) *graph.add_output() = std::move(info);
}

// Second outputs (masks, statistics, log-probabilities) that only the backward read.
void trim_outputs(onnx::GraphProto& graph, const Names& reads) {
  static constexpr const char* kTrimmed[] = {"Dropout", "LayerNormalization", "MaxPool", "SoftmaxCrossEntropyLoss"};
  for (auto& node : *graph.mutable_node()) {
    if (std::find(std::begin(kTrimmed), std::end(kTrimmed), node.op_type()) == std::end(kTrimmed)) continue;
    while (node.output_size() > 1 && !reads.count(node.output(node.output_size() - 1))) node.mutable_output()->RemoveLast();
  }
}

// Keeps the elements that `keep` says, in order; `moved(from, to)` is told of each.
template <typename List, typename Moved>
void keep_elements(List& list, const std::vector<bool>& keep, Moved&& moved) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i) {
    if (!keep[i]) continue;
    moved(i, kept);
    if (kept != i) list.SwapElements(kept, i);
    ++kept;
  }
  list.DeleteSubrange(kept, list.size() - kept);
}

// To the new places of the nodes.
void move_payloads(WireModel& wire, const std::map<int, int>& moved) {
  decltype(wire.attributes) attributes;
  for (const auto& [at, payload] : wire.attributes)
    if (const auto to = moved.find(at.first); to != moved.end()) attributes[{to->second, at.second}] = payload;
  wire.attributes = std::move(attributes);
  decltype(wire.nested) nested;
  for (const auto& [path, payload] : wire.nested)
    if (const auto to = moved.find(path.at(0)); to != moved.end()) {
      TensorPath place = path;
      place[0] = to->second;
      nested[std::move(place)] = payload;
    }
  wire.nested = std::move(nested);
}

void drop_nodes(onnx::GraphProto& graph, WireModel* wire, Names& reads) {
  std::vector<bool> needed(graph.node_size());
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    for (const std::string& output : graph.node(i).output()) needed[i] = needed[i] || (!output.empty() && reads.count(output) > 0);
    if (needed[i]) add_reads(graph.node(i), reads);
  }
  std::map<int, int> moved;
  keep_elements(*graph.mutable_node(), needed, [&](int from, int to) { moved[from] = to; });
  if (wire) move_payloads(*wire, moved);
}

void drop_initializers(onnx::GraphProto& graph, WireModel* wire, const Names& reads) {
  std::vector<bool> needed;
  for (const auto& tensor : graph.initializer()) needed.push_back(reads.count(tensor.name()) > 0);
  std::map<int, TensorPayload> initializers;
  keep_elements(*graph.mutable_initializer(), needed, [&](int from, int to) {
    if (wire && wire->initializers.count(from)) initializers[to] = wire->initializers.at(from);
  });
  if (wire) wire->initializers = std::move(initializers);
}

}  // namespace

void drop_unread(onnx::GraphProto& graph, WireModel* wire) {
  Names reads;
  for (const auto& output : graph.output()) reads.insert(output.name());
  drop_nodes(graph, wire, reads);
  drop_initializers(graph, wire, reads);
  auto& inputs = *graph.mutable_input();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), [&](const auto& info) { return !reads.count(info.name()); }), inputs.end());
  trim_outputs(graph, reads);
}

void keep_forward(onnx::ModelProto& model, WireModel* wire, TrainingFacts& facts) {
  onnx::GraphProto& graph = *model.mutable_graph();
  if (std::none_of(graph.node().begin(), graph.node().end(), is_backward)) return;
  const bool yields = std::any_of(graph.node().begin(), graph.node().end(), is_yield);
  if (yields) add_yielded(graph);
  const Names backward = backward_values(graph);
  const int nodes = graph.node_size(), outputs = graph.output_size();
  auto& list = *graph.mutable_output();
  const auto is_of_backward = [&](const onnx::ValueInfoProto& info) { return backward.count(info.name()) > 0; };
  if (std::all_of(list.begin(), list.end(), is_of_backward)) return;
  list.erase(std::remove_if(list.begin(), list.end(), is_of_backward), list.end());
  drop_unread(graph, wire);
  if (facts.roles.empty() && graph.initializer_size() == 0)
    facts.missing =
        "its parameters are graph inputs without values: put ONNX Runtime's checkpoint, as <prefix>checkpoint, beside "
        "<prefix>training_model.onnx, or export the model with its weights";
  facts.report.push_back(fmt::format("the graph holds its own backward{}: {} and {} of it are left out, as gradients are derived anew",
                                     yields ? " behind a YieldOp" : "", counted(nodes - graph.node_size(), "node"),
                                     counted(outputs - graph.output_size(), "output")));
}

}  // namespace zeroplan
