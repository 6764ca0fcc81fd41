#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/backward.h"
#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/passes.h"
#include "passes/train/record.h"
#include "passes/train/record_statistics.h"

namespace zeroplan {
namespace {

bool is_trainable(const Graph& graph, const Value& value) {
  return value.kind == ValueKind::parameter && is_floating(value.dtype) && graph.parameters[value.parameter].trainable;
}

std::vector<bool> trainable_leaves(const Graph& graph) {
  std::vector<bool> leaves;
  for (const Value& value : graph.values) leaves.push_back(is_trainable(graph, value));
  return leaves;
}

class Autodiff {
 public:
  Autodiff(Graph& graph, const CompileOptions& options)
      : graph_(graph), build_(graph), backward_(graph, build_, trainable_leaves(graph), graph.loss.sum), options_(options) {
    build_.backward = true;
  }

  void run() {
    refuse_missing_vjps();
    const ValueId one = seed();
    if (one != kNone) backward_.run(one, [this](ValueId leaf, ValueId gradient) { add_gradient(leaf, gradient); });
    fill_missing();
  }

 private:
  void refuse_missing_vjps() const {
    std::vector<std::string> problems;
    for (const Node* node : backward_.without_gradient())
      problems.push_back(
          fmt::format("node '{}' ({}, computes '{}')", node->origin, op_name(node->op), graph_.values[node->outputs[0]].name));
    if (problems.empty()) return;
    throw ErrorList(
        "these nodes stand between a trainable parameter and the loss, but their operators have no gradient; freeze the "
        "parameters behind them (--freeze) or export the model without them",
        problems);
  }

  // kNone: no parameter reaches the loss.
  ValueId seed() {
    const Value& loss = graph_.values[graph_.loss.sum];
    if (backward_.any() && options_.precision == DType::f16)  // so that no gradient is too small for its type
      return graph_.loss.scale = graph_.add_value({.name = "loss_scale", .dtype = DType::f32, .shape = {}, .kind = ValueKind::state});
    HostTensor one(loss.dtype, loss.shape);
    check(one.count() == 1 && is_floating(loss.dtype), "the loss is one floating-point number");
    one.set(0, 1.0);
    return backward_.any() ? build_.constant(std::move(one), "loss_seed") : kNone;
  }

  DType wire_of(int32_t parameter) const { return options_.wire_dtype(graph_.parameters[parameter].dtype); }

  void add_gradient(ValueId leaf, ValueId total) {
    const int32_t parameter = graph_.values[leaf].parameter;
    const auto [place, added] = graph_.gradients.emplace(parameter, total);
    if (!added) place->second = build_.add(OpKind::add, {build_.cast(place->second, build_.dtype(total)), total});
    place->second = build_.cast(place->second, wire_of(parameter));
  }

  void fill_missing() {
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.parameters.size()); ++i) {
      const Parameter& parameter = graph_.parameters[i];
      if (!parameter.trainable || !is_floating(parameter.dtype) || graph_.gradients.count(i)) continue;
      build_.origin = parameter.name;
      graph_.gradients[i] = build_.filled(0, parameter.shape, wire_of(i));
    }
  }

  Graph& graph_;
  Builder build_;
  Backward backward_;
  const CompileOptions& options_;
};

}  // namespace

bool autodiff(Graph& graph, const CompileOptions& options) {
  if (options.forward_only()) return false;
  if (graph.loss.sum == kNone) throw Error("the graph has no loss to differentiate; name one with --loss");
  record_loss_of(graph, graph.loss, Program::micro_step, "metrics", options.micro_batches);
  record_statistics(graph, options.micro_batches);
  Autodiff(graph, options).run();
  sort_programs(graph);
  return true;
}

}  // namespace zeroplan
