// reshape, transpose, broadcast: strided views of their operand's bytes.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

const std::vector<int64_t>& shape_of_result(const Node& node) { return node.attributes.get_ints(Attr::shape); }
const std::vector<int64_t>& permutation_of(const Node& node) { return node.attributes.get_ints(Attr::permutation); }

void check_reshape(const Shape& from, const Shape& to) {
  bool valid = true;
  for (const int64_t dim : to) valid = valid && dim >= 0;
  if (!valid || elements(to) != elements(from)) throw Error(fmt::format("x {} cannot take the shape {}", to_string(from), to_string(to)));
}

std::vector<OutputType> infer_reshape(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  check_reshape(x.shape, shape_of_result(node));
  return {{x.dtype, shape_of_result(node)}};
}

void evaluate_reshape(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) { out[0] = in[0].reshaped(out[0].shape()); }

void reshape_vjp(VjpContext& c) {
  const Shape shape = c.build.shape(c.input(0));
  c.set(0, c.build.reshape(c.output_gradient(), shape));
}

struct Axis {
  int64_t size, stride;
};

// Runs of axes that lie behind each other in memory become one; axes of size 1 vanish.
std::vector<Axis> merged_axes(const Shape& shape, const Strides& strides) {
  std::vector<Axis> runs;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (!runs.empty() && runs.back().stride == shape[i] * strides[i])
      runs.back() = {runs.back().size * shape[i], strides[i]};
    else
      runs.push_back({shape[i], strides[i]});
  }
  return runs;
}

// Each run has to split into consecutive axes of the result.
bool reshape_strides(const Shape& in_shape, const Strides& in_strides, const Shape& shape, Strides& strides) {
  strides = contiguous_strides(shape);
  if (elements(shape) == 0) return true;
  size_t axis = 0;
  for (const Axis& run : merged_axes(in_shape, in_strides)) {
    int64_t left = run.size;
    while (left > 1) {
      if (axis == shape.size() || left % shape[axis] != 0) return false;
      left /= shape[axis];
      strides[axis++] = run.stride * left;
    }
  }
  return true;
}

void view_reshape(const Node& node, int, const Shape& in_shape, const Strides& in_strides, Strides& out_strides, int64_t& out_offset,
                  bool& possible) {
  check_reshape(in_shape, shape_of_result(node));
  out_offset = 0;
  possible = reshape_strides(in_shape, in_strides, shape_of_result(node), out_strides);
}

// The shape with its axes permuted; throws Error for what is no permutation of them.
Shape permuted(const Shape& from, const std::vector<int64_t>& permutation) {
  std::vector<bool> used(from.size(), false);
  Shape shape;
  for (const int64_t axis : permutation) {
    if (axis < 0 || axis >= static_cast<int64_t>(used.size()) || used[axis]) break;
    used[axis] = true;
    shape.push_back(from[axis]);
  }
  if (shape.size() != from.size() || permutation.size() != shape.size())
    throw Error(fmt::format("{} is not a permutation of the axes of x {}", to_string(permutation), to_string(from)));
  return shape;
}

std::vector<OutputType> infer_transpose(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  return {{x.dtype, permuted(x.shape, permutation_of(node))}};
}

void evaluate_transpose(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const auto& permutation = permutation_of(node);
  Index from(permutation.size());
  for_each_index(out[0].shape(), [&](const Index& index, int64_t n) {
    for (size_t i = 0; i < permutation.size(); ++i) from[permutation[i]] = index[i];
    copy_element(in[0], flat_index(from, in[0].shape()), out[0], n);
  });
}

// Undoes a transpose that the gradient itself ends in, so that the gradient of a transposed weight is no view.
void transpose_vjp(VjpContext& c) {
  const std::vector<int64_t> permutation = permutation_of(c.node);
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
  const Graph& graph = c.build.graph();
  const ValueId dy = c.output_gradient();
  const NodeId producer = graph.value(dy).producer;
  const bool undone =
      producer != kNone && graph.nodes[producer].op == OpKind::transpose && permutation_of(graph.nodes[producer]) == permutation;
  c.set(0, undone ? graph.nodes[producer].inputs[0] : c.build.transpose(dy, inverse));
}

void view_transpose(const Node& node, int, const Shape& in_shape, const Strides& in_strides, Strides& out_strides, int64_t& out_offset,
                    bool& possible) {
  permuted(in_shape, permutation_of(node));
  out_strides.clear();
  for (const int64_t axis : permutation_of(node)) out_strides.push_back(in_strides[axis]);
  out_offset = 0;
  possible = true;
}

void check_broadcast(const Shape& from, const Shape& to) {
  if (!broadcasts_to(from, to)) throw Error(fmt::format("x {} does not broadcast to {}", to_string(from), to_string(to)));
}

std::vector<OutputType> infer_broadcast(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  const Shape& shape = shape_of_result(node);
  check_broadcast(x.shape, shape);
  return {{x.dtype, shape}};
}

void evaluate_broadcast(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  for_each_index(out[0].shape(),
                 [&](const Index& index, int64_t n) { copy_element(in[0], broadcast_index(index, in[0].shape()), out[0], n); });
}

void broadcast_vjp(VjpContext& c) {
  const Shape shape = c.build.shape(c.input(0));
  c.set(0, c.build.sum_to(c.output_gradient(), shape));
}

void view_broadcast(const Node& node, int, const Shape& in_shape, const Strides& in_strides, Strides& out_strides, int64_t& out_offset,
                    bool& possible) {
  const Shape& shape = shape_of_result(node);
  check_broadcast(in_shape, shape);
  const size_t lead = shape.size() - in_shape.size();
  out_strides.assign(shape.size(), 0);
  for (size_t i = 0; i < in_shape.size(); ++i)
    if (in_shape[i] == shape[lead + i]) out_strides[lead + i] = in_strides[i];
  out_offset = 0;
  possible = true;
}

}  // namespace

OpDef reshape_def() {
  OpDef def;
  def.infer = infer_reshape;
  def.vjp = reshape_vjp;
  def.evaluate = evaluate_reshape;
  def.view = view_reshape;
  return def;
}

OpDef transpose_def() {
  OpDef def;
  def.infer = infer_transpose;
  def.vjp = transpose_vjp;
  def.evaluate = evaluate_transpose;
  def.view = view_transpose;
  return def;
}

OpDef broadcast_def() {
  OpDef def;
  def.infer = infer_broadcast;
  def.vjp = broadcast_vjp;
  def.evaluate = evaluate_broadcast;
  def.view = view_broadcast;
  return def;
}

}  // namespace zeroplan
