#include "passes/edit/graph_edits.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"
#include "passes/train/record.h"

namespace zeroplan {
namespace {

class EvalCloner {
 public:
  explicit EvalCloner(Graph& graph) : graph_(graph), copy_(graph.values.size(), kNone) {}

  void run(int64_t micro_batches) {
    const size_t count = graph_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (graph_.nodes[i].program == Program::micro_step) clone(graph_.nodes[i]);
    graph_.eval_loss = graph_.loss;
    graph_.eval_loss.sum = copy_of(graph_.loss.sum);
    graph_.eval_loss.weight = copy_of(graph_.loss.weight);
    record_loss_of(graph_, graph_.eval_loss, Program::eval_step, "eval_metrics", micro_batches);
  }

 private:
  ValueId copy_of(ValueId id) const { return id == kNone || copy_[id] == kNone ? id : copy_[id]; }

  void clone(Node node) {
    node.program = Program::eval_step;
    for (ValueId& input : node.inputs) input = copy_of(input);
    for (ValueId& output : node.outputs) {
      Value value = graph_.values[output];
      value.name = "eval." + value.name;
      output = copy_[output] = graph_.add_value(std::move(value));
    }
    graph_.add_node(std::move(node));
  }

  Graph& graph_;
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
