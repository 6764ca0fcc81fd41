// shape_of, range, trilu: exist at import only, where constant folding evaluates them.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer_shape_of(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  return {{DType::i64, {static_cast<int64_t>(operand(graph, node, 0, "x").shape.size())}}};
}

void evaluate_shape_of(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  for (size_t i = 0; i < in[0].shape().size(); ++i) out[0].set_int(static_cast<int64_t>(i), in[0].shape()[i]);
}

const HostTensor& constant_scalar(const Graph& graph, const Node& node, int i, std::string_view what) {
  const Value& value = operand(graph, node, i, what);
  if (value.kind != ValueKind::constant || elements(value.shape) != 1)
    throw Error(fmt::format("{} '{}' must be a constant scalar: its value decides the shape of the result", what, value.name));
  return value.constant;
}

uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }

int64_t range_count(const HostTensor& start, const HostTensor& limit, const HostTensor& delta) {
  if (delta.get(0) == 0) throw Error("delta is 0");
  if (is_floating(start.dtype())) return std::max<int64_t>(0, checked_int(std::ceil((limit.get(0) - start.get(0)) / delta.get(0))));
  const int64_t from = start.get_int(0), to = limit.get_int(0), step = delta.get_int(0);
  if (from == to || (to < from) != (step < 0)) return 0;
  const uint64_t span = step < 0 ? bits(from) - bits(to) : bits(to) - bits(from), stride = step < 0 ? 0 - bits(step) : bits(step);
  const uint64_t count = (span - 1) / stride + 1;
  return count > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(count);
}

std::vector<OutputType> infer_range(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  const HostTensor& start = constant_scalar(graph, node, 0, "start");
  const HostTensor& limit = constant_scalar(graph, node, 1, "limit");
  const HostTensor& delta = constant_scalar(graph, node, 2, "delta");
  expect_dtype(graph.value(node.inputs[1]), start.dtype(), "limit");
  expect_dtype(graph.value(node.inputs[2]), start.dtype(), "delta");
  return {{start.dtype(), {range_count(start, limit, delta)}}};
}

void evaluate_range(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  for (int64_t i = 0; i < out[0].count(); ++i) {
    if (is_floating(out[0].dtype()))
      out[0].set(i, in[0].get(0) + static_cast<double>(i) * in[2].get(0));
    else
      out[0].set_int(i, static_cast<int64_t>(bits(in[0].get_int(0)) + bits(i) * bits(in[2].get_int(0))));
  }
}

// trilu: x, k (optional, number of the diagonal) → y; `upper` 1 keeps the upper triangle.
std::vector<OutputType> infer_trilu(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 2);
  const Value& x = operand(graph, node, 0, "x");
  expect_rank(x, 2, kMaxRank, "x");
  if (has_input(node, 1) && elements(integer_operand(graph, node, 1, "k").shape) != 1) throw Error("k must be a scalar");
  return {{x.dtype, x.shape}};
}

void evaluate_trilu(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const bool upper = node.attributes.get_int(Attr::upper, 1) != 0;
  const int64_t k = has_input(node, 1) ? in[1].get_int(0) : 0;
  const size_t rank = in[0].shape().size();
  out[0] = HostTensor(out[0].dtype(), out[0].shape());
  for_each_index(in[0].shape(), [&](const Index& index, int64_t n) {
    const int64_t diagonal = index[rank - 1] - index[rank - 2];
    if (upper ? diagonal >= k : diagonal <= k) copy_element(in[0], n, out[0], n);
  });
}

OpDef fold_def(std::vector<OutputType> (*infer)(const Graph&, const Node&),
               void (*evaluate)(const Node&, std::span<const HostTensor>, std::span<HostTensor>)) {
  OpDef def;
  def.infer = infer;
  def.evaluate = evaluate;
  return def;
}

}  // namespace

OpDef shape_of_def() { return fold_def(infer_shape_of, evaluate_shape_of); }
OpDef range_def() { return fold_def(infer_range, evaluate_range); }
OpDef trilu_def() { return fold_def(infer_trilu, evaluate_trilu); }

}  // namespace zeroplan
