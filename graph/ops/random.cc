// random_uniform: → y of `shape` in [0, 1). dropout: x → y, mask. dropout_grad: dy, mask → dx. `key` tells the nodes of a model apart. The
// numbers depend on the step (RunScalars), so the first two have no reference evaluator and are never folded.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer_random_uniform(const Graph&, const Node& node) {
  expect_inputs(node, 0, 0);
  node.attributes.get_int(Attr::key);
  const Shape& shape = node.attributes.get_ints(Attr::shape);
  for (const int64_t dim : shape)
    if (dim < 0) throw Error(fmt::format("shape {} has a negative dimension", to_string(shape)));
  const DType dtype = dtype_attribute(node.attributes);
  if (!is_floating(dtype)) throw Error("makes floating-point numbers only");
  if (is_half(dtype)) throw Error("makes float32 and float64 alone, as numbers of 16 bits would be rounded to 1");
  return {{dtype, shape}};
}

double ratio_of(const Node& node) {
  const double ratio = node.attributes.get_double(Attr::ratio);
  if (!(ratio >= 0 && ratio <= 1)) throw Error(fmt::format("ratio {} is not from 0 to 1", ratio));
  return ratio;
}

std::vector<OutputType> infer_dropout(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  ratio_of(node);
  node.attributes.get_int(Attr::key);
  const Value& x = floating_operand(graph, node, 0, "x");
  return {{x.dtype, x.shape}, {DType::boolean, x.shape}};
}

void dropout_vjp(VjpContext& c) {
  const Attributes ratio = {{Attr::ratio, c.node.attributes.get_double(Attr::ratio)}};
  c.set(0, c.build.add(OpKind::dropout_grad, {c.output_gradient(), c.output(1)}, ratio));
}

std::vector<OutputType> infer_dropout_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  ratio_of(node);
  const Value& dy = floating_operand(graph, node, 0, "dy");
  const Value& mask = operand(graph, node, 1, "mask");
  expect_dtype(mask, DType::boolean, "mask");
  expect_shape(mask, dy.shape, "mask");
  return {{dy.dtype, dy.shape}};
}

void evaluate_dropout_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const double scale = 1 / (1 - ratio_of(node));
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, in[1].get_int(i) != 0 ? in[0].get(i) * scale : 0);
}

}  // namespace

OpDef random_uniform_def() {
  OpDef def;
  def.infer = infer_random_uniform;
  def.vjp = zero_vjp;
  return def;
}

OpDef dropout_def() {
  OpDef def;
  def.infer = infer_dropout;
  def.vjp = dropout_vjp;
  def.in_place = {{0, 0}};
  return def;
}

OpDef dropout_grad_def() {
  OpDef def;
  def.infer = infer_dropout_grad;
  def.evaluate = evaluate_dropout_grad;
  def.in_place = {{0, 0}};
  return def;
}

}  // namespace zeroplan
