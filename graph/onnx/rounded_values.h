#pragma once
// Which integers of a graph were rounded from floating-point numbers, by a cast with straight_through 1 and nodes that move its result; and
// those numbers, moved alike, through which gradients pass.
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

class FoldingBuilder;

class RoundedValues {
 public:
  // Once for each node that is added.
  void note(const Graph& graph, const Node& node);
  bool contains(ValueId id) const { return rounded_.count(id) > 0; }
  // What `id` was rounded from, as `dtype`; where it was not, a cast of it.
  ValueId origin(FoldingBuilder& build, ValueId id, DType dtype);

 private:
  std::vector<ValueId> unknown_origins(const Graph& graph, ValueId id, DType dtype) const;

  std::set<ValueId> rounded_;
  std::map<std::pair<ValueId, DType>, ValueId> origins_;
};

}  // namespace zeroplan
