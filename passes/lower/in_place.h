#pragma once
// Which outputs of a step take over the bytes of one of its operands.
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

struct StorageGroups;

// Decides node by node, in execution order, while `storage` is being filled: operands must have their places already.
class InPlace {
 public:
  InPlace(const Graph& graph, const StorageGroups& storage) : graph_(graph), storage_(storage) {}
  void find_last_reads();
  // (output, input) pairs of the node. State always changes in place; other operands where this node is their last reader.
  std::vector<std::pair<int32_t, int32_t>> pairs(NodeId id) const;

 private:
  bool may_share(NodeId id, int output, int input) const;

  const Graph& graph_;
  const StorageGroups& storage_;
  std::vector<NodeId> last_read_;  // by root value
};

}  // namespace zeroplan
