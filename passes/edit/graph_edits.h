#pragma once
// Insertions, removals and replacements, collected against the node ids of one graph and applied at once: linear, whatever their number.
#include <map>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/builder.h"

namespace zeroplan {

class GraphEdits {
 public:
  explicit GraphEdits(Graph& graph);

  // Several nodes at one place keep the order of the calls.
  void before(NodeId at, Node node);
  void after(NodeId at, Node node);
  void append(Node node);  // at the end of its program
  void erase(NodeId at);
  // Node `at` becomes `op` with the same first output; further outputs are added. Returns false, changing nothing, where the op would
  // give another type than the old output has, or refuses its operands.
  bool become(NodeId at, OpKind op, std::vector<ValueId> inputs, Attributes attributes);
  // All reads of `from` go to `to` once applied.
  void forward(ValueId from, ValueId to) { replacement_[from] = to; }

  // A builder whose nodes carry origin, direction and program of node `at`. After each use, place() puts them before it, or discard()
  // takes them back.
  Builder build_before(NodeId at);
  void place();
  void discard();

  // Rebuilds the nodes, sorted by program, and reindexes. Returns whether there was anything to do. Not to be used again afterwards.
  bool apply();

 private:
  void rebuild();

  Graph& graph_;
  NodeId at_ = kNone;  // of the last build_before
  std::vector<std::vector<Node>> before_, after_;
  std::vector<bool> erased_;
  std::map<ValueId, ValueId> replacement_;
  bool changed_ = false;
};

// A node of `program` with outputs still to be added.
Node make_node(OpKind op, Program program, std::vector<ValueId> inputs, int32_t unit = kNone);
// Nodes back into program order, keeping the order within each; producers are recomputed.
void sort_programs(Graph& graph);

}  // namespace zeroplan
