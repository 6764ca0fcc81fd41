#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/normalized_channels.h"
#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"
#include "passes/train/record.h"

namespace zeroplan {
namespace {

// The forward in evaluation mode: dropout keeps everything, batch normalization works with its running statistics.
class EvalCloner {
 public:
  explicit EvalCloner(Graph& graph) : graph_(graph), build_(graph), copy_(graph.values.size(), kNone) {
    build_.program = Program::eval_step;
  }

  void run(int64_t micro_batches) {
    const size_t count = graph_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (graph_.nodes[i].program == Program::micro_step) evaluate(graph_.nodes[i]);
    graph_.eval_loss = graph_.loss;
    graph_.eval_loss.sum = copy_of(graph_.loss.sum);
    graph_.eval_loss.weight = copy_of(graph_.loss.weight);
    record_loss_of(graph_, graph_.eval_loss, Program::eval_step, "eval_metrics", micro_batches);
  }

 private:
  ValueId copy_of(ValueId id) const { return id == kNone || copy_[id] == kNone ? id : copy_[id]; }

  void evaluate(Node node) {  // a copy: building nodes moves the originals
    for (ValueId& input : node.inputs) input = copy_of(input);
    build_.origin = node.origin;
    if (node.op == OpKind::dropout) return keep_all(node);
    if (node.op == OpKind::batch_norm) return normalize(node, statistics_of(node));
    clone(std::move(node));
  }

  void clone(Node node) {
    node.program = Program::eval_step;
    for (ValueId& output : node.outputs) {
      Value value = graph_.values[output];
      value.name = "eval." + value.name;
      output = copy_[output] = graph_.add_value(std::move(value));
    }
    graph_.add_node(std::move(node));
  }

  void keep_all(const Node& node) {
    copy_[node.outputs[0]] = node.inputs[0];
    const auto reads_mask = [&](const Node& reader) {
      return std::find(reader.inputs.begin(), reader.inputs.end(), node.outputs[1]) != reader.inputs.end();
    };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), reads_mask)) return;
    copy_[node.outputs[1]] = build_.filled(1, build_.shape(node.outputs[1]), DType::boolean);
  }

  const BatchStatistics& statistics_of(const Node& node) const {
    for (const BatchStatistics& s : graph_.statistics)
      if (s.mean == node.outputs[1]) return s;
    throw Error(
        fmt::format("node '{}' normalizes by the statistics of its batch and has no running statistics that training keeps, as its mean "
                    "and variance are computed; leave out the evaluation, or let the node use what it is given with --eval-bn",
                    node.origin));
  }

  void normalize(const Node& node, const BatchStatistics& running) {
    const ValueId mean = running.running_mean, variance = running.running_variance;
    copy_[node.outputs[0]] = normalized_channels(build_, node.inputs[0], {mean, variance, node.inputs[1], node.inputs[2]},
                                                 node.attributes.get_double(Attr::epsilon));
    copy_[node.outputs[1]] = mean;
    copy_[node.outputs[2]] = variance;
  }

  Graph& graph_;
  Builder build_;
  std::vector<ValueId> copy_;
};

}  // namespace

bool clone_eval(Graph& graph, const CompileOptions& options) {
  // From here on only the loss is trained on and reported.
  bool changed = !graph.outputs.empty();
  graph.outputs.clear();
  changed = drop_dead_nodes(graph) || changed;
  if (options.eval && graph.loss.sum != kNone) {
    EvalCloner(graph).run(options.micro_batches);
    changed = true;
  }
  sort_programs(graph);
  return changed;
}

}  // namespace zeroplan
