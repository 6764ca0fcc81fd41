// copy, concat, fill.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer_copy(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  return {{x.dtype, x.shape}};
}

void evaluate_copy(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) { out[0] = in[0]; }

void copy_vjp(VjpContext& c) { c.set(0, c.output_gradient()); }

std::vector<OutputType> infer_concat(const Graph& graph, const Node& node) {
  if (node.inputs.empty()) throw Error("takes at least one input");
  const Value& first = operand(graph, node, 0, "x");
  const int64_t axis = axis_attribute(node, first.shape);
  Shape shape = first.shape;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& x = operand(graph, node, static_cast<int>(i), "x");
    expect_dtype(x, first.dtype, "x");
    Shape expected = first.shape;
    if (x.shape.size() == expected.size()) expected[axis] = x.shape[axis];
    expect_shape(x, expected, "x");
    shape[axis] = checked_add(shape[axis], x.shape[axis]);
  }
  return {{first.dtype, shape}};
}

void evaluate_concat(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const int64_t axis = axis_attribute(node, out[0].shape());
  int64_t start = 0;
  for (const HostTensor& x : in) {
    for_each_index(x.shape(), [&](const Index& index, int64_t n) {
      Index to = index;
      to[axis] += start;
      copy_element(x, n, out[0], flat_index(to, out[0].shape()));
    });
    start += x.shape()[axis];
  }
}

void concat_vjp(VjpContext& c) {
  const int64_t axis = axis_attribute(c.node, c.build.shape(c.output(0)));
  int64_t start = 0;
  for (size_t i = 0; i < c.node.inputs.size(); ++i) {
    const Shape shape = c.build.shape(c.node.inputs[i]);
    std::vector<int64_t> starts(shape.size(), 0);
    starts[axis] = start;
    start += shape[axis];
    if (!c.needs(static_cast<int>(i))) continue;
    const std::vector<int64_t> steps(shape.size(), 1);
    c.set(static_cast<int>(i),
          c.build.add(OpKind::slice, {c.output_gradient()}, {{Attr::shape, shape}, {Attr::starts, starts}, {Attr::steps, steps}}));
  }
}

std::vector<OutputType> infer_fill(const Graph&, const Node& node) {
  expect_inputs(node, 0, 0);
  node.attributes.get_double(Attr::value);
  const Shape& shape = node.attributes.get_ints(Attr::shape);
  for (const int64_t dim : shape)
    if (dim < 0) throw Error(fmt::format("shape {} has a negative dimension", to_string(shape)));
  return {{dtype_attribute(node.attributes), shape}};
}

void evaluate_fill(const Node& node, std::span<const HostTensor>, std::span<HostTensor> out) {
  const double value = node.attributes.get_double(Attr::value);
  for (int64_t i = 0; i < out[0].count(); ++i) {
    if (is_integer(out[0].dtype()))
      out[0].set_int(i, truncated_int(value));
    else
      out[0].set(i, value);
  }
}

}  // namespace

OpDef copy_def() {
  OpDef def;
  def.infer = infer_copy;
  def.vjp = copy_vjp;
  def.evaluate = evaluate_copy;
  def.accepts = accept_any_strides;
  return def;
}

OpDef concat_def() {
  OpDef def;
  def.infer = infer_concat;
  def.vjp = concat_vjp;
  def.evaluate = evaluate_concat;
  def.accepts = accept_any_strides;
  return def;
}

OpDef fill_def() {
  OpDef def;
  def.infer = infer_fill;
  def.vjp = zero_vjp;
  def.evaluate = evaluate_fill;
  return def;
}

}  // namespace zeroplan
