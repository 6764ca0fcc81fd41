// Casts between float32 and 16 bits that undo each other, and sums that can leave or enter a kernel in the type that they are cast to.
#include <algorithm>
#include <map>

#include "graph/ops/op_def.h"
#include "passes/edit/producers.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

class CastFolder {
 public:
  explicit CastFolder(Graph& graph) : graph_(graph), users_(graph.users()), roots_(root_values(graph)) {}

  bool run() {
    bool changed = false;
    for (Node& node : graph_.nodes) {
      undo(node);
      changed = widen_operand(node) || changed;
      changed = widen_result(node) || changed;
    }
    if (!replace_reads(graph_, replacement_) && !changed) return false;
    drop_dead_nodes(graph_);
    return true;
  }

 private:
  DType dtype(ValueId id) const { return graph_.values[id].dtype; }
  static bool is_cast(const Node& node) { return node.op == OpKind::cast; }

  // To its own type; or back to 16 bits what was widened from them.
  void undo(const Node& node) {
    if (!is_cast(node) || !is_floating(dtype(node.outputs[0]))) return;
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (dtype(x) == dtype(y)) replacement_[y] = x;
    const Node* before = producer_of(graph_, x, OpKind::cast);
    if (before && is_half(dtype(y)) && dtype(before->inputs[0]) == dtype(y) && !is_half(dtype(x))) replacement_[y] = before->inputs[0];
  }

  // A sum of 16-bit elements that were widened: its kernel widens them itself.
  bool widen_operand(Node& node) {
    if ((node.op != OpKind::reduce_sum && node.op != OpKind::reduce_mean) || dtype(node.inputs[0]) != DType::f32) return false;
    const Node* cast = producer_of(graph_, node.inputs[0], OpKind::cast);
    if (!cast || !is_half(dtype(cast->inputs[0]))) return false;
    node.inputs[0] = cast->inputs[0];
    node.attributes.set(Attr::dtype, dtype_value(DType::f32));
    return true;
  }

  static bool sums(OpKind op) {
    return op == OpKind::matmul || op == OpKind::reduce_sum || op == OpKind::reduce_mean || op == OpKind::gather_grad ||
           op == OpKind::conv_grad_weight;
  }

  // A sum in float32 that is rounded only to be widened again.
  bool widen_result(Node& node) {
    if (!sums(node.op)) return false;
    const ValueId y = node.outputs[0];
    if (!is_half(dtype(y)) || users_[y].empty() || roots_.count(y)) return false;
    const auto widens = [&](NodeId id) {
      const Node& user = graph_.nodes[id];
      return is_cast(user) && dtype(user.outputs[0]) == DType::f32;
    };
    if (!std::all_of(users_[y].begin(), users_[y].end(), widens)) return false;
    node.attributes.set(Attr::dtype, dtype_value(DType::f32));
    graph_.values[y].dtype = DType::f32;
    for (const NodeId id : users_[y]) replacement_[graph_.nodes[id].outputs[0]] = y;
    return true;
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  std::set<ValueId> roots_;
  std::map<ValueId, ValueId> replacement_;
};

}  // namespace

bool fold_casts(Graph& graph, const CompileOptions& options) { return is_half(options.precision) && CastFolder(graph).run(); }

}  // namespace zeroplan
