#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/passes.h"
#include "passes/train/gradient_sum.h"
#include "passes/train/record.h"
#include "passes/train/record_statistics.h"

namespace zeroplan {
namespace {

class Autodiff {
 public:
  explicit Autodiff(Graph& graph) : graph_(graph), build_(graph), sum_(graph, build_), forward_(static_cast<NodeId>(graph.nodes.size())) {
    build_.backward = true;
  }

  void run() {
    find_needed();
    find_on_path();
    refuse_missing_vjps();
    seed();
    for (NodeId id = forward_ - 1; id >= 0; --id) {
      if (on_path_[id]) differentiate(id);
      for (ValueId leaf : first_read_[id]) finish_leaf(leaf);
    }
    fill_missing();
  }

 private:
  bool is_trainable(const Value& value) const {
    return value.kind == ValueKind::parameter && is_floating(value.dtype) && graph_.parameters[value.parameter].trainable;
  }

  // A value needs a gradient where a trainable parameter reaches it through floating-point values.
  void find_needed() {
    needed_.assign(graph_.values.size(), false);
    first_read_.assign(forward_, {});
    std::vector<bool> read(graph_.values.size(), false);
    for (size_t i = 0; i < needed_.size(); ++i) needed_[i] = is_trainable(graph_.values[i]);
    for (NodeId id = 0; id < forward_; ++id) {
      const Node& node = graph_.nodes[id];
      if (node.program != Program::micro_step) continue;
      bool any = false;
      for (ValueId input : node.inputs) {
        if (input == kNone || !needed_[input]) continue;
        any = true;
        if (is_trainable(graph_.values[input]) && !read[input]) first_read_[id].push_back(input);
        read[input] = true;
      }
      for (ValueId output : node.outputs) needed_[output] = any && is_floating(graph_.values[output].dtype);
    }
  }

  // Nodes between a needed operand and the loss.
  void find_on_path() {
    on_path_.assign(forward_, false);
    std::vector<bool> reaches(graph_.values.size(), false);
    reaches[graph_.loss.sum] = true;
    for (NodeId id = forward_ - 1; id >= 0; --id) {
      const Node& node = graph_.nodes[id];
      bool active = false;
      for (ValueId output : node.outputs) active = active || (reaches[output] && needed_[output]);
      if (!active || node.program != Program::micro_step) continue;
      on_path_[id] = true;
      for (ValueId input : node.inputs)
        if (input != kNone) reaches[input] = true;
    }
  }

  void refuse_missing_vjps() const {
    std::vector<std::string> problems;
    for (NodeId id = 0; id < forward_; ++id) {
      const Node& node = graph_.nodes[id];
      if (on_path_[id] && !op_def(node.op).vjp)
        problems.push_back(
            fmt::format("node '{}' ({}, computes '{}')", node.origin, op_name(node.op), graph_.values[node.outputs[0]].name));
    }
    if (problems.empty()) return;
    throw ErrorList(
        "these nodes stand between a trainable parameter and the loss, but their operators have no gradient; freeze the "
        "parameters behind them (--freeze) or export the model without them",
        problems);
  }

  void seed() {
    const Value& loss = graph_.values[graph_.loss.sum];
    HostTensor one(loss.dtype, loss.shape);
    check(one.count() == 1 && is_floating(loss.dtype), "the loss is one floating-point number");
    one.set(0, 1.0);
    if (needed_[graph_.loss.sum]) sum_.contribute(graph_.loss.sum, build_.constant(std::move(one), "loss_seed"));
  }

  void differentiate(NodeId id) {
    const Node node = graph_.nodes[id];  // a copy: building nodes moves the originals
    build_.origin = node.origin;
    std::vector<ValueId> gradients;
    bool any = false;
    for (ValueId output : node.outputs) {
      gradients.push_back(sum_.total(output));
      any = any || gradients.back() != kNone;
    }
    if (!any) return;
    std::vector<bool> needs;
    for (ValueId input : node.inputs) needs.push_back(input != kNone && needed_[input]);
    VjpContext context(build_, node, std::move(gradients), needs);
    op_def(node.op).vjp(context);
    for (size_t i = 0; i < needs.size(); ++i)
      if (needs[i] && context.gradients()[i] != kNone) sum_.contribute(node.inputs[i], context.gradients()[i]);
  }

  // All reads of the parameter lie behind: its gradient is complete.
  void finish_leaf(ValueId leaf) {
    const ValueId total = sum_.total(leaf);
    if (total != kNone) add_gradient(leaf, total);
  }

  void add_gradient(ValueId leaf, ValueId total) {
    const int32_t parameter = graph_.values[leaf].parameter;
    const auto [place, added] = graph_.gradients.emplace(parameter, total);
    if (!added) place->second = build_.add(OpKind::add, {place->second, total});
  }

  void fill_missing() {
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.parameters.size()); ++i) {
      const Parameter& parameter = graph_.parameters[i];
      if (!parameter.trainable || !is_floating(parameter.dtype) || graph_.gradients.count(i)) continue;
      build_.origin = parameter.name;
      const std::string dtype(dtype_name(parameter.dtype));
      graph_.gradients[i] = build_.add(OpKind::fill, {}, {{Attr::value, 0.0}, {Attr::shape, parameter.shape}, {Attr::dtype, dtype}});
    }
  }

  Graph& graph_;
  Builder build_;
  GradientSum sum_;
  NodeId forward_;                                // nodes before the backward
  std::vector<bool> needed_, on_path_;            // by value, by node
  std::vector<std::vector<ValueId>> first_read_;  // by node: trainable leaves that no earlier node reads
};

}  // namespace

bool autodiff(Graph& graph, const CompileOptions& options) {
  if (options.forward_only()) return false;
  if (graph.loss.sum == kNone) throw Error("the graph has no loss to differentiate; name one with --loss");
  record_loss_of(graph, graph.loss, Program::micro_step, "metrics", options.micro_batches);
  record_statistics(graph, options.micro_batches);
  Autodiff(graph).run();
  sort_programs(graph);
  return true;
}

}  // namespace zeroplan
