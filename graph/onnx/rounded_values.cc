#include "graph/onnx/rounded_values.h"

#include <algorithm>
#include <limits>

#include "graph/onnx/folding_builder.h"

namespace zeroplan {
namespace {

bool rounds(const Node& node) { return node.op == OpKind::cast && node.attributes.get_int(Attr::straight_through, 0) != 0; }

// An integer type that holds every number of the other.
bool holds(DType wide, DType narrow) {
  const auto ends = [](DType dtype) {
    return visit_dtype(dtype, [](auto zero) {
      using Limits = std::numeric_limits<decltype(zero)>;
      return std::pair(static_cast<double>(Limits::lowest()), static_cast<double>(Limits::max()));
    });
  };
  return !is_floating(wide) && !is_floating(narrow) && ends(wide).first <= ends(narrow).first && ends(wide).second >= ends(narrow).second;
}

// Inputs that a node moves or chooses from without computing with them; empty: it is another.
std::vector<size_t> moved_inputs(const Graph& graph, const Node& node) {
  switch (node.op) {
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::slice:
    case OpKind::broadcast:
    case OpKind::gather: return {0};
    case OpKind::maximum:
    case OpKind::minimum: return {0, 1};
    case OpKind::where: return {1, 2};
    case OpKind::cast:
      return holds(graph.value(node.outputs[0]).dtype, graph.value(node.inputs[0]).dtype) ? std::vector<size_t>{0} : std::vector<size_t>{};
    case OpKind::concat: {
      std::vector<size_t> all(node.inputs.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      return all;
    }
    default: return {};
  }
}

// At a bound that is a constant all of the gradient goes to what is bounded, as in PyTorch's clamp.
ValueId bounded(FoldingBuilder& build, OpKind op, ValueId x, ValueId bound) {
  if (build.is_constant(x)) std::swap(x, bound);
  const ValueId outside = build.add(op == OpKind::maximum ? OpKind::less : OpKind::greater, {x, bound});
  return build.add(OpKind::where, {outside, bound, x});
}

}  // namespace

void RoundedValues::note(const Graph& graph, const Node& node) {
  const std::vector<size_t> moved = moved_inputs(graph, node);
  if (rounds(node) || std::any_of(moved.begin(), moved.end(), [&](size_t i) { return contains(node.inputs[i]); }))
    rounded_.insert(node.outputs[0]);
}

// With `id` itself last. Ids rise along the graph.
std::vector<ValueId> RoundedValues::unknown_origins(const Graph& graph, ValueId id, DType dtype) const {
  std::set<ValueId> found = {id};
  for (std::vector<ValueId> open = {id}; !open.empty();) {
    const Node& node = graph.nodes[graph.value(open.back()).producer];
    open.pop_back();
    if (rounds(node)) continue;
    for (const size_t i : moved_inputs(graph, node)) {
      const ValueId input = node.inputs[i];
      if (contains(input) && !origins_.count({input, dtype}) && found.insert(input).second) open.push_back(input);
    }
  }
  return {found.begin(), found.end()};
}

ValueId RoundedValues::origin(FoldingBuilder& build, ValueId id, DType dtype) {
  if (!contains(id)) return build.cast(id, dtype);
  if (const auto known = origins_.find({id, dtype}); known != origins_.end()) return known->second;
  for (const ValueId each : unknown_origins(build.graph(), id, dtype)) {
    Node node = build.graph().nodes[build.graph().value(each).producer];  // a copy: nodes are added below
    if (!rounds(node))
      for (const size_t i : moved_inputs(build.graph(), node)) {
        const auto known = origins_.find({node.inputs[i], dtype});
        node.inputs[i] = known == origins_.end() ? build.cast(node.inputs[i], dtype) : known->second;
      }
    ValueId& made = origins_[{each, dtype}];
    const bool bounds = node.op == OpKind::maximum || node.op == OpKind::minimum;
    if (node.op == OpKind::cast)
      made = build.cast(node.inputs[0], dtype);
    else if (bounds && build.is_constant(node.inputs[0]) != build.is_constant(node.inputs[1]))
      made = bounded(build, node.op, node.inputs[0], node.inputs[1]);
    else
      made = build.add(node.op, node.inputs, node.attributes);
  }
  return origins_.at({id, dtype});
}

}  // namespace zeroplan
