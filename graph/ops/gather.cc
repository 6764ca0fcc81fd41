// gather: table, indices → y. gather_grad: dy, indices → d table. An index below 0 counts from the end of the axis.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

Shape gathered_shape(const Shape& table, const Shape& indices, int64_t axis) {
  Shape shape(table.begin(), table.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), table.begin() + axis + 1, table.end());
  return shape;
}

std::vector<OutputType> infer_gather(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& table = operand(graph, node, 0, "table");
  const Value& indices = integer_operand(graph, node, 1, "indices");
  expect_rank(table, 1, kMaxRank, "table");
  return {{table.dtype, gathered_shape(table.shape, indices.shape, axis_attribute(node, table.shape))}};
}

// Calls fn(element of y, element of the table) for every element of y.
template <typename Fn>
void for_each_gathered(const Shape& table, const HostTensor& indices, int64_t axis, Fn fn) {
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= table[i];
  for (size_t i = axis + 1; i < table.size(); ++i) inner *= table[i];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < indices.count(); ++k) {
      const int64_t given = indices.get_int(k);
      const int64_t row = given < 0 ? given + table[axis] : given;
      if (row < 0 || row >= table[axis]) throw Error(fmt::format("index {} is outside the {} entries of the table", given, table[axis]));
      for (int64_t i = 0; i < inner; ++i) fn((o * indices.count() + k) * inner + i, (o * table[axis] + row) * inner + i);
    }
  }
}

void evaluate_gather(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const Shape& table = in[0].shape();
  for_each_gathered(table, in[1], axis_attribute(node, table), [&](int64_t y, int64_t t) { copy_element(in[0], t, out[0], y); });
}

void gather_vjp(VjpContext& c) {
  if (!c.needs(0)) return;
  const Shape shape = c.build.shape(c.input(0));
  c.set(0, c.build.add(OpKind::gather_grad, {c.output_gradient(), c.input(1)},
                       {{Attr::axis, axis_attribute(c.node, shape)}, {Attr::shape, shape}}));
}

std::vector<OutputType> infer_gather_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& dy = floating_operand(graph, node, 0, "dy");
  const Value& indices = integer_operand(graph, node, 1, "indices");
  const Shape& shape = node.attributes.get_ints(Attr::shape);
  expect_shape(dy, gathered_shape(shape, indices.shape, axis_attribute(node, shape)), "dy");
  return {{dy.dtype, shape}};
}

// Repeated indices add up in index order.
void evaluate_gather_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const Shape& table = out[0].shape();
  std::vector<double> sums(out[0].count(), 0);
  for_each_gathered(table, in[1], axis_attribute(node, table), [&](int64_t y, int64_t t) { sums[t] += in[0].get(y); });
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, sums[i]);
}

void gather_grad_vjp(VjpContext& c) {
  if (!c.needs(0)) return;
  const int64_t axis = axis_attribute(c.node, c.node.attributes.get_ints(Attr::shape));
  c.set(0, c.build.add(OpKind::gather, {c.output_gradient(), c.input(1)}, {{Attr::axis, axis}}));
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
  return def;
}

}  // namespace zeroplan
