#pragma once
// Reverse mode over the nodes that a graph holds when this is made: one vjp per node between the leaves and the target, last node first.
#include <functional>
#include <string>
#include <vector>

#include "graph/ops/gradient_sum.h"

namespace zeroplan {

class Backward {
 public:
  // `leaves`, by value: what gradients are wanted for; none flows through them. `build` adds the nodes of the backward.
  Backward(Graph& graph, Builder& build, std::vector<bool> leaves, ValueId target);

  // Does a leaf reach the target?
  bool any() const { return needed_[target_]; }
  // Nodes on the way whose operators have no gradient.
  std::vector<const Node*> without_gradient() const;
  // `seed`: gradient of the target. `done` is told each leaf that got one, as soon as it is whole.
  void run(ValueId seed, const std::function<void(ValueId leaf, ValueId gradient)>& done);

 private:
  void find_needed();
  void find_on_path();
  void differentiate(NodeId id);

  Graph& graph_;
  Builder& build_;
  GradientSum sum_;
  const NodeId nodes_;
  const std::vector<bool> leaves_;
  const ValueId target_;
  std::vector<bool> needed_, on_path_;            // by value, by node
  std::vector<std::vector<ValueId>> first_read_;  // by node: leaves that no earlier node reads
};

}  // namespace zeroplan
