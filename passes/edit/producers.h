#pragma once
// Looking backwards from a value.
#include <optional>

#include "graph/ir/graph.h"

namespace zeroplan {

// The node that computes `id`, if it is an `op`; else nullptr. Any op without the last argument.
const Node* producer_of(const Graph& graph, ValueId id);
const Node* producer_of(const Graph& graph, ValueId id, OpKind op);
// The only element of a floating-point constant, whatever its rank.
std::optional<double> scalar_constant(const Graph& graph, ValueId id);

// x of `op(x, c)` with a scalar constant c that leaves shape and type of x; commutative ops match either order.
struct ScalarOperand {
  ValueId x = kNone;
  double c = 0;
};
std::optional<ScalarOperand> with_scalar(const Graph& graph, ValueId id, OpKind op);

}  // namespace zeroplan
