#pragma once
// What layer_norm and rms_norm have in common. Only they include this.
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "graph/ops/op_def.h"

namespace zeroplan {

// Shape of the numbers kept per row.
Shape row_shape(Shape shape);
// x, then factors over its last axis that `names` names; returns x.
const Value& check_norm_operands(const Graph& graph, const Node& node, std::initializer_list<std::string_view> names);
// dy, x and gamma, then the numbers per row that `rows` names; returns dy.
const Value& check_norm_grad_operands(const Graph& graph, const Node& node, std::initializer_list<std::string_view> rows);
template <int kPerElement>
double norm_flops(const Graph& graph, const Node& node) {
  return kPerElement * static_cast<double>(elements(graph.value(node.inputs[0]).shape));
}
// All but infer, vjp and evaluate. The result may take the place of operand 0.
OpDef norm_def(double (*flops)(const Graph&, const Node&));
OpDef norm_grad_def(double (*flops)(const Graph&, const Node&));

}  // namespace zeroplan
