#pragma once
// What the rewriting passes share: looking backwards from a value, and replacing nodes without losing the order.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "graph/ir/graph.h"

namespace zeroplan {

// The node that computes `id`, if it is an `op`; else nullptr. Any op without the last argument.
const Node* producer_of(const Graph& graph, ValueId id);
const Node* producer_of(const Graph& graph, ValueId id, OpKind op);
// The only element of a floating-point constant, whatever its rank.
std::optional<double> scalar_constant(const Graph& graph, ValueId id);

// x of `op(x, c)` with a scalar constant c that leaves shape and type of x; commutative ops match either order.
struct ScalarOperand {
  ValueId x = kNone;
  double c = 0;
};
std::optional<ScalarOperand> with_scalar(const Graph& graph, ValueId id, OpKind op);

// Values that must survive: losses, wanted outputs, gradients, both sides of state updates.
std::set<ValueId> root_values(const Graph& graph);
// Replaces reads (operands, outputs, losses, gradients, state) by way of `replacement`, which is followed to its end. Returns whether any was.
bool replace_reads(Graph& graph, const std::map<ValueId, ValueId>& replacement);
// Drops every node that no root needs; collectives and host steps stay. Producers are recomputed. Returns whether any was dropped.
bool drop_dead_nodes(Graph& graph);
// Nodes back into program order, keeping the order within each; producers are recomputed.
void sort_programs(Graph& graph);

// Replaces nodes one by one; new nodes stand right before the one that they help to replace. The graph is consistent after finish().
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}
  // A builder whose nodes go before node `at` and carry its origin and program, once place() is called.
  Builder before(NodeId at);
  // Node `at` becomes `op` with the same first output; further outputs are added. Returns false, changing nothing, where the op would
  // give another type than the old output has, or refuses its operands.
  bool become(NodeId at, OpKind op, std::vector<ValueId> inputs, Attributes attributes);
  // Takes back what the builder added.
  void discard() { graph_.nodes.resize(first_); }
  // All reads of the output of `at` go to `value` from finish() on.
  void forward(NodeId at, ValueId value) { replacement_[graph_.nodes[at].outputs[0]] = value; }
  // Moves what the builder added into place; call after each use of before().
  void place();
  bool finish();

 private:
  Graph& graph_;
  NodeId at_ = kNone;
  size_t first_ = 0;
  bool changed_ = false;
  std::map<NodeId, std::vector<Node>> inserted_;
  std::map<ValueId, ValueId> replacement_;
};

}  // namespace zeroplan
