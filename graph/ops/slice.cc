// slice (a view) and slice_grad: for each axis a start and a step; `shape` is the result's.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

const std::vector<int64_t>& starts_of(const Node& node) { return node.attributes.get_ints(Attr::starts); }
const std::vector<int64_t>& steps_of(const Node& node) { return node.attributes.get_ints(Attr::steps); }
const std::vector<int64_t>& shape_of_result(const Node& node) { return node.attributes.get_ints(Attr::shape); }

// `part` must be a slice of `whole`.
void check_slice(const Node& node, const Shape& whole, const Shape& part) {
  const auto& starts = starts_of(node);
  const auto& steps = steps_of(node);
  if (starts.size() != whole.size() || steps.size() != whole.size() || part.size() != whole.size())
    throw Error(fmt::format("starts {}, steps {} and shape {} need one entry per axis of {}", to_string(starts), to_string(steps),
                            to_string(part), to_string(whole)));
  for (size_t i = 0; i < whole.size(); ++i) {
    if (part[i] == 0) continue;
    int64_t last = 0;
    const bool counted = !__builtin_mul_overflow(part[i] - 1, steps[i], &last) && !__builtin_add_overflow(starts[i], last, &last);
    const bool inside = counted && starts[i] >= 0 && starts[i] < whole[i] && last >= 0 && last < whole[i];
    if (part[i] < 0 || steps[i] == 0 || !inside)
      throw Error(fmt::format("slice of axis {} (start {}, step {}, size {}) leaves the {} elements there are", i, starts[i], steps[i],
                              part[i], whole[i]));
  }
}

std::vector<OutputType> infer_slice(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  check_slice(node, x.shape, shape_of_result(node));
  return {{x.dtype, shape_of_result(node)}};
}

// Number in the whole tensor of the element at `index` of its slice.
int64_t whole_index(const Node& node, const Index& index, const Shape& whole) {
  Index from(index.size());
  for (size_t i = 0; i < index.size(); ++i) from[i] = starts_of(node)[i] + index[i] * steps_of(node)[i];
  return flat_index(from, whole);
}

void evaluate_slice(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  for_each_index(out[0].shape(),
                 [&](const Index& index, int64_t n) { copy_element(in[0], whole_index(node, index, in[0].shape()), out[0], n); });
}

void slice_vjp(VjpContext& c) {
  const Shape shape = c.build.shape(c.input(0));
  c.set(0, c.build.add(OpKind::slice_grad, {c.output_gradient()},
                       {{Attr::shape, shape}, {Attr::starts, starts_of(c.node)}, {Attr::steps, steps_of(c.node)}}));
}

void view_slice(const Node& node, int, const Shape& in_shape, const Strides& in_strides, Strides& out_strides, int64_t& out_offset,
                bool& possible) {
  check_slice(node, in_shape, shape_of_result(node));
  out_strides = in_strides;
  out_offset = 0;
  possible = true;
  if (elements(shape_of_result(node)) == 0) return;
  for (size_t i = 0; i < in_strides.size(); ++i) {
    out_offset += starts_of(node)[i] * in_strides[i];
    out_strides[i] *= steps_of(node)[i];
  }
}

std::vector<OutputType> infer_slice_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& dy = operand(graph, node, 0, "dy");
  check_slice(node, shape_of_result(node), dy.shape);
  return {{dy.dtype, shape_of_result(node)}};
}

void evaluate_slice_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  out[0] = HostTensor(out[0].dtype(), out[0].shape());
  for_each_index(in[0].shape(),
                 [&](const Index& index, int64_t n) { copy_element(in[0], n, out[0], whole_index(node, index, out[0].shape())); });
}

void slice_grad_vjp(VjpContext& c) {
  const Shape shape = c.build.shape(c.input(0));
  c.set(0, c.build.add(OpKind::slice, {c.output_gradient()},
                       {{Attr::shape, shape}, {Attr::starts, starts_of(c.node)}, {Attr::steps, steps_of(c.node)}}));
}

}  // namespace

OpDef slice_def() {
  OpDef def;
  def.infer = infer_slice;
  def.vjp = slice_vjp;
  def.evaluate = evaluate_slice;
  def.view = view_slice;
  return def;
}

OpDef slice_grad_def() {
  OpDef def;
  def.infer = infer_slice_grad;
  def.vjp = slice_grad_vjp;
  def.evaluate = evaluate_slice_grad;
  def.accepts = accept_any_strides;
  return def;
}

}  // namespace zeroplan
