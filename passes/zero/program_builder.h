#pragma once
// Appends nodes to one program and follows how they change state: `now(state)` is its content at this point of the program.
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/edit/graph_edits.h"

namespace zeroplan {

class ProgramBuilder {
 public:
  ProgramBuilder(Graph& graph, GraphEdits& edits, Program program) : graph_(graph), edits_(edits), program_(program) {}

  ValueId now(ValueId state) const;
  // Appends the node after giving it one new output per state in `changed`: the state's next content.
  void change(Node node, const std::vector<ValueId>& changed);
  void append(Node node);
  Node node(OpKind op, std::vector<ValueId> inputs, int32_t unit = kNone) const { return make_node(op, program_, std::move(inputs), unit); }
  // A node that fills the state.
  void fill(ValueId state, double value);
  void zero(ValueId state) { fill(state, 0); }
  // Declares the last content of every changed state as what the next program finds.
  void finish();

 private:
  Graph& graph_;
  GraphEdits& edits_;
  Program program_;
  std::map<ValueId, ValueId> now_;
};

// load and save (docs/architecture.md): zeroed state, loss scale and weights in, every parameter out.
void build_load(Graph& graph, GraphEdits& edits, const std::vector<ValueId>& zeroed);
void build_save(Graph& graph, GraphEdits& edits);

}  // namespace zeroplan
