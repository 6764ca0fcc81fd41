#include "graph/ops/rules.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"

namespace zeroplan {

void expect_inputs(const Node& node, int least, int most) {
  const int count = static_cast<int>(node.inputs.size());
  if (count >= least && count <= most) return;
  if (least == most) throw Error(fmt::format("takes {} inputs, got {}", least, count));
  throw Error(fmt::format("takes {} to {} inputs, got {}", least, most, count));
}

const Value& operand(const Graph& graph, const Node& node, int i, std::string_view what) {
  if (!has_input(node, i)) throw Error(fmt::format("input {} ({}) is missing", i, what));
  return graph.values.at(node.inputs[i]);
}

const Value& floating_operand(const Graph& graph, const Node& node, int i, std::string_view what) {
  const Value& value = operand(graph, node, i, what);
  if (!is_floating(value.dtype))
    throw Error(fmt::format("{} '{}' is {}; it must be floating-point: insert a cast", what, value.name, type_name(value.dtype)));
  return value;
}

const Value& wide_operand(const Graph& graph, const Node& node, int i, std::string_view what) {
  const Value& value = floating_operand(graph, node, i, what);
  if (is_half(value.dtype))
    throw Error(fmt::format("{} '{}' is {}; it must be float32 or float64: insert a cast", what, value.name, type_name(value.dtype)));
  return value;
}

const Value& integer_operand(const Graph& graph, const Node& node, int i, std::string_view what) {
  const Value& value = operand(graph, node, i, what);
  if (!is_integer(value.dtype))
    throw Error(fmt::format("{} '{}' is {}; it must be int32 or int64", what, value.name, type_name(value.dtype)));
  return value;
}

void expect_dtype(const Value& value, DType dtype, std::string_view what) {
  if (value.dtype == dtype) return;
  throw Error(fmt::format("{} '{}' is {}, expected {}: insert a cast", what, value.name, type_name(value.dtype), type_name(dtype)));
}

void expect_shape(const Value& value, const Shape& shape, std::string_view what) {
  if (value.shape == shape) return;
  throw Error(fmt::format("{} '{}' has shape {}, expected {}", what, value.name, to_string(value.shape), to_string(shape)));
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[lead + i]) return false;
  return true;
}

void expect_rank(const Value& value, int least, int most, std::string_view what) {
  const int rank = static_cast<int>(value.shape.size());
  if (rank >= least && rank <= most) return;
  const std::string wanted = least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  throw Error(fmt::format("{} '{}' has shape {}, expected rank {}", what, value.name, to_string(value.shape), wanted));
}

DType sum_dtype(const Node& node, DType operand) {
  if (!node.attributes.has(Attr::dtype)) return operand;
  const DType dtype = dtype_attribute(node.attributes);
  if (dtype != operand && dtype != wide_dtype(operand))
    throw Error(fmt::format("sums {} into {}; it can be {}", type_name(operand), type_name(dtype), type_name(wide_dtype(operand))));
  return dtype;
}

int64_t axis_attribute(const Node& node, const Shape& shape) {
  return normalize_axis(node.attributes.get_int(Attr::axis), static_cast<int64_t>(shape.size()));
}

bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

int64_t row_count(const Shape& shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

bool accept_any_strides(const Graph&, const Node&, int, const Shape&, const Strides&) { return true; }

void zero_vjp(VjpContext&) {}

}  // namespace zeroplan
