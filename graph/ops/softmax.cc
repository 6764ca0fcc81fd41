// softmax: x → y over the last axis. softmax_grad: dy, y → dx.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer_softmax(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = floating_operand(graph, node, 0, "x");
  expect_rank(x, 1, kMaxRank, "x");
  return {{x.dtype, x.shape}};
}

void evaluate_softmax(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor& x = in[0];
  const int64_t columns = x.shape().back();
  for (int64_t row = 0; row < row_count(x.shape()); ++row) {
    const int64_t first = row * columns;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < columns; ++i) largest = std::max(largest, x.get(first + i));
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(x.get(first + i) - largest);
    for (int64_t i = 0; i < columns; ++i) out[0].set(first + i, std::exp(x.get(first + i) - largest) / sum);
  }
}

void softmax_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::softmax_grad, {c.output_gradient(), c.output(0)})); }

std::vector<OutputType> infer_softmax_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& dy = floating_operand(graph, node, 0, "dy");
  const Value& y = operand(graph, node, 1, "y");
  expect_rank(dy, 1, kMaxRank, "dy");
  expect_dtype(y, dy.dtype, "y");
  expect_shape(y, dy.shape, "y");
  return {{dy.dtype, dy.shape}};
}

// dx = y · (dy - Σ dy·y)
void evaluate_softmax_grad(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &dy = in[0], &y = in[1];
  const int64_t columns = y.shape().back();
  for (int64_t row = 0; row < row_count(y.shape()); ++row) {
    const int64_t first = row * columns;
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += dy.get(first + i) * y.get(first + i);
    for (int64_t i = 0; i < columns; ++i) out[0].set(first + i, y.get(first + i) * (dy.get(first + i) - sum));
  }
}

double flops(const Graph& graph, const Node& node) { return 5.0 * static_cast<double>(elements(graph.value(node.inputs[0]).shape)); }

}  // namespace

OpDef softmax_def() {
  OpDef def;
  def.infer = infer_softmax;
  def.vjp = softmax_vjp;
  def.evaluate = evaluate_softmax;
  def.in_place = {{0, 0}};
  def.flops = flops;
  return def;
}

OpDef softmax_grad_def() {
  OpDef def;
  def.infer = infer_softmax_grad;
  def.evaluate = evaluate_softmax_grad;
  def.in_place = {{0, 0}, {0, 1}};
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
