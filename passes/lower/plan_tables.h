#pragma once
// The tables of a plan that steps refer to: tensors (places) and values (contents), made on demand and without repetition.
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/lower/storage_groups.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

class PlanTables {
 public:
  // `storage` has its offsets. Adds to `plan`, which must outlive this. Values of the source graph come first.
  PlanTables(const Graph& graph, const StorageGroups& storage, Plan& plan);

  Operand operand(ValueId value);  // {kNone, kNone} for kNone
  int32_t tensor(ValueId value);
  // The whole buffer of a group that holds a unit: a slot, a reduce buffer, replicated weights.
  int32_t whole_tensor(int32_t group);
  // A rank's own part of a unit's whole weights.
  int32_t own_part(int32_t unit);
  int32_t workspace_tensor(int32_t group);
  // A copy (Value::copy_of) carries the value of its original.
  int32_t value(ValueId value);
  int32_t new_value(const std::string& name);

 private:
  int32_t add_tensor(PlanTensor tensor, const StorageGroup& group);
  int32_t parameter_value(const Value& leaf);
  std::string origin(ValueId value) const;

  const Graph& graph_;
  const StorageGroups& storage_;
  Plan& plan_;
  std::vector<int32_t> tensor_of_, value_of_;  // by value
  std::vector<int32_t> whole_of_;              // by group
  std::map<int32_t, int32_t> own_part_of_;     // by unit
  std::vector<int32_t> parameter_value_;       // by parameter
};

}  // namespace zeroplan
