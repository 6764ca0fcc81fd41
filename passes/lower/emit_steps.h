#pragma once
// Nodes of a lowered graph as steps of a plan.
#include "graph/ir/graph.h"
#include "passes/lower/plan_tables.h"
#include "passes/lower/storage_groups.h"

namespace zeroplan {

class StepEmitter {
 public:
  StepEmitter(const Graph& graph, const StorageGroups& storage, PlanTables& tables, int ranks);
  Step emit(NodeId id);  // waits are left to assign_waits

 private:
  void fill_operands(NodeId id, Step& step);
  void gather_weights(NodeId id, Step& step);
  void reduce_scatter(NodeId id, Step& step);
  void optimizer_update(NodeId id, Step& step);
  Operand whole(NodeId id);

  const Graph& graph_;
  const StorageGroups& storage_;
  PlanTables& tables_;
  int ranks_;
  std::vector<int32_t> whole_value_;  // by group: value of the whole buffer
  std::vector<int> gathers_;          // by unit: so far, but for save
};

}  // namespace zeroplan
