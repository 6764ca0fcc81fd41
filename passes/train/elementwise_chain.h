#pragma once
// A chain of elementwise operators while it grows: fuse_elementwise joins producers into their reader, then writes the chain out.
#include <map>
#include <optional>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/elementwise.h"

namespace zeroplan {

inline constexpr size_t kMaxOperands = 6;
inline constexpr size_t kMaxInstructions = 12;

struct ElementwiseChain {
  // An instruction's operand: a value from outside, or the result of an earlier instruction.
  struct Source {
    ValueId value = kNone;
    int instruction = -1;
  };
  struct Step {
    OpKind op{};
    std::vector<Source> sources;
    int approximate = 0;
  };
  std::vector<Step> steps;  // the last one is the result

  std::vector<ValueId> operands() const;  // distinct, in order of first use
};

// The chain of one node, whose operands `joined` are replaced by their own chains. nullopt above the limits.
std::optional<ElementwiseChain> join_chains(const Node& node, const std::map<ValueId, const ElementwiseChain*>& joined);
// Operands and code of the finished chain; scalar constants become part of the code where `shape` does not depend on them.
struct EncodedChain {
  std::vector<ValueId> operands;
  Attributes attributes;
};
EncodedChain encode_chain(const Graph& graph, const ElementwiseChain& chain, const Shape& shape);

}  // namespace zeroplan
