#pragma once
// Adds nodes to a graph one by one; every shape and type comes from the op's own infer.
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  // Every node added from here on carries these.
  std::string origin;
  bool backward = false;
  Program program = Program::micro_step;

  // One output; throws Error naming `origin` where the op refuses its inputs.
  ValueId add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}, std::string name = {});
  // All outputs; names[i] may be empty or missing.
  std::vector<ValueId> add_multi(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}, std::vector<std::string> names = {});
  ValueId constant(HostTensor tensor, std::string name = {});
  ValueId scalar(double value, DType dtype);
  ValueId filled(double value, const Shape& shape, DType dtype);

  // Shorthands that return the operand itself where nothing changes.
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId cast(ValueId x, DType dtype);
  ValueId transpose(ValueId x, const std::vector<int64_t>& permutation);
  ValueId transpose_last_two(ValueId x);
  // Sums a gradient of the broadcast result down to the operand's shape.
  ValueId sum_to(ValueId x, const Shape& shape);

  Graph& graph() { return graph_; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  DType dtype(ValueId id) const { return graph_.values[id].dtype; }

 private:
  Graph& graph_;
};

}  // namespace zeroplan
