#pragma once
// Insertions and removals of nodes, collected against the ids of one graph and applied at once: linear, whatever their number.
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

class NodeEdits {
 public:
  explicit NodeEdits(Graph& graph);

  // Several nodes at one place keep the order of the calls.
  void before(NodeId at, Node node);
  void after(NodeId at, Node node);
  void append(Node node);  // at the end of its program
  void erase(NodeId at);
  // Rebuilds the nodes, sorted by program, and reindexes. Returns whether there was anything to do. Not to be used again afterwards.
  bool apply();

 private:
  Graph& graph_;
  std::vector<std::vector<Node>> before_, after_;
  std::vector<bool> erased_;
  bool changed_ = false;
};

// A node of `program` with outputs still to be added.
Node make_node(OpKind op, Program program, std::vector<ValueId> inputs, int32_t unit = kNone);

}  // namespace zeroplan
