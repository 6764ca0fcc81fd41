// gather: table, indices → y. gather_grad: dy, indices → d table. An index below 0 counts from the end of the axis. With `axes`, table
// and indices share their leading axes, each place along which has indices of its own.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/cuda_index_sort_sizes.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

// Leading axes that the indices share with the table, one by one: `axes` is 0, 1, … and missing where there are none.
int64_t shared_axes(const Node& node) {
  return node.attributes.has(Attr::axes) ? static_cast<int64_t>(node.attributes.get_ints(Attr::axes).size()) : 0;
}

void check_shared(const Node& node, const Shape& table, const Shape& indices, int64_t axis) {
  const int64_t shared = shared_axes(node);
  for (int64_t i = 0; i < shared; ++i)
    if (node.attributes.get_ints(Attr::axes)[i] != i) throw Error("axes must be the leading ones, in order");
  const bool fits = shared <= axis && shared <= static_cast<int64_t>(indices.size());
  if (!fits || !std::equal(table.begin(), table.begin() + shared, indices.begin()))
    throw Error(fmt::format("table {} and indices {} do not share {} leading axes", to_string(table), to_string(indices), shared));
}

Shape gathered_shape(const Node& node, const Shape& table, const Shape& indices) {
  const int64_t axis = axis_attribute(node, table);
  check_shared(node, table, indices, axis);
  Shape shape(table.begin(), table.begin() + axis);
  shape.insert(shape.end(), indices.begin() + shared_axes(node), indices.end());
  shape.insert(shape.end(), table.begin() + axis + 1, table.end());
  return shape;
}

std::vector<OutputType> infer_gather(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& table = operand(graph, node, 0, "table");
  const Value& indices = integer_operand(graph, node, 1, "indices");
  expect_rank(table, 1, kMaxRank, "table");
  return {{table.dtype, gathered_shape(node, table.shape, indices.shape)}};
}

// Calls fn(element of y, element of the table) for every element of y.
template <typename Fn>
void for_each_gathered(const Node& node, const Shape& table, const HostTensor& indices, Fn fn) {
  const int64_t axis = axis_attribute(node, table), shared = shared_axes(node);
  int64_t batch = 1, outer = 1, inner = 1;
  for (int64_t i = 0; i < shared; ++i) batch *= table[i];
  for (int64_t i = shared; i < axis; ++i) outer *= table[i];
  for (size_t i = axis + 1; i < table.size(); ++i) inner *= table[i];
  const int64_t count = batch == 0 ? 0 : indices.count() / batch;
  for (int64_t o = 0; o < batch * outer; ++o) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t given = indices.get_int(o / outer * count + k);
      const int64_t row = given < 0 ? given + table[axis] : given;
      if (row < 0 || row >= table[axis]) throw Error(fmt::format("index {} is outside the {} entries of the table", given, table[axis]));
      for (int64_t i = 0; i < inner; ++i) fn((o * count + k) * inner + i, (o * table[axis] + row) * inner + i);
    }
  }
}

void evaluate_gather(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  for_each_gathered(node, in[0].shape(), in[1], [&](int64_t y, int64_t t) { copy_element(in[0], t, out[0], y); });
}

// Where the rows come from: the attributes of both ops.
Attributes places(const Node& node, const Shape& table) {
  Attributes attributes = {{Attr::axis, axis_attribute(node, table)}};
  if (shared_axes(node) > 0) attributes.set(Attr::axes, node.attributes.get_ints(Attr::axes));
  return attributes;
}

void gather_vjp(VjpContext& c) {
  if (!c.needs(0)) return;
  const Shape shape = c.build.shape(c.input(0));
  Attributes attributes = places(c.node, shape);
  attributes.set(Attr::shape, shape);
  c.set(0, c.build.add(OpKind::gather_grad, {c.output_gradient(), c.input(1)}, attributes));
}

std::vector<OutputType> infer_gather_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& dy = floating_operand(graph, node, 0, "dy");
  const Value& indices = integer_operand(graph, node, 1, "indices");
  const Shape& shape = node.attributes.get_ints(Attr::shape);
  expect_shape(dy, gathered_shape(node, shape, indices.shape), "dy");
  return {{sum_dtype(node, dy.dtype), shape}};
}

// Repeated indices add up in index order.
void evaluate_gather_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  std::vector<double> sums(out[0].count(), 0);
  for_each_gathered(node, out[0].shape(), in[1], [&](int64_t y, int64_t t) { sums[t] += in[0].get(y); });
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, sums[i]);
}

void gather_grad_vjp(VjpContext& c) {
  if (!c.needs(0)) return;
  const Shape shape = c.node.attributes.get_ints(Attr::shape);
  c.set(0, c.build.add(OpKind::gather, {c.output_gradient(), c.input(1)}, places(c.node, shape)));
}

// Batches share no rows.
int64_t grad_cuda_workspace(const Graph& graph, const Node& node) {
  const Shape& shape = node.attributes.get_ints(Attr::shape);
  int64_t rows = shape[axis_attribute(node, shape)];
  for (int64_t i = 0; i < shared_axes(node); ++i) rows *= shape[i];
  return cuda_index_sort_workspace({elements(graph.values[node.inputs[1]].shape), rows});
}

}  // namespace

OpDef gather_def() {
  OpDef def;
  def.infer = infer_gather;
  def.vjp = gather_vjp;
  def.evaluate = evaluate_gather;
  return def;
}

OpDef gather_grad_def() {
  OpDef def;
  def.infer = infer_gather_grad;
  def.vjp = gather_grad_vjp;
  def.evaluate = evaluate_gather_grad;
  def.cuda_workspace = grad_cuda_workspace;
  return def;
}

}  // namespace zeroplan
