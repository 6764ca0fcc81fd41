#pragma once
// Operand checks that the infer functions share. All throw Error with a message about the operand; the caller adds the node.
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

inline bool has_input(const Node& node, int i) { return i < static_cast<int>(node.inputs.size()) && node.inputs[i] != kNone; }
void expect_inputs(const Node& node, int least, int most);
// The operand; throws where it was left out. `what` names it in messages ("x", "gamma").
const Value& operand(const Graph& graph, const Node& node, int i, std::string_view what);
const Value& floating_operand(const Graph& graph, const Node& node, int i, std::string_view what);
const Value& wide_operand(const Graph& graph, const Node& node, int i, std::string_view what);     // f32 or f64
const Value& integer_operand(const Graph& graph, const Node& node, int i, std::string_view what);  // i32 or i64
void expect_dtype(const Value& value, DType dtype, std::string_view what);
void expect_shape(const Value& value, const Shape& shape, std::string_view what);
// May an operand of shape `from` be broadcast to exactly `to`?
bool broadcasts_to(const Shape& from, const Shape& to);
void expect_rank(const Value& value, int least, int most, std::string_view what);
// Type of a sum over elements of `operand`: theirs, or f32 where they have 16 bits and the node's attribute dtype says so.
DType sum_dtype(const Node& node, DType operand);
int64_t axis_attribute(const Node& node, const Shape& shape);
bool is_integer(DType dtype);  // i32 or i64
// Rows and columns of a tensor seen as a matrix over its last axis.
int64_t row_count(const Shape& shape);

bool accept_any_strides(const Graph&, const Node&, int input, const Shape&, const Strides&);
// A vjp whose gradient is zero: sets nothing.
void zero_vjp(VjpContext&);

}  // namespace zeroplan
