// cross_entropy: logits [R,C], labels [R] → sum of the losses, weight (labels that count), lse [R].
// cross_entropy_grad: seed (scalar), logits, labels, lse → dlogits. Without the attribute ignore_index every label counts.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"
#include "graph/ops/workspace.h"

namespace zeroplan {

namespace {

// logits and labels at inputs first and first + 1.
const Value& check_logits(const Graph& graph, const Node& node, int first) {
  const Value& logits = floating_operand(graph, node, first, "logits");
  expect_rank(logits, 2, 2, "logits");
  expect_shape(integer_operand(graph, node, first + 1, "labels"), {logits.shape[0]}, "labels");
  return logits;
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value& logits = check_logits(graph, node, 0);
  const DType sums = wide_dtype(logits.dtype);
  return {{sums, {}}, {sums, {}}, {sums, {logits.shape[0]}}};
}

bool ignored(const Node& node, int64_t label) {
  return node.attributes.has(Attr::ignore_index) && label == node.attributes.get_int(Attr::ignore_index);
}

int64_t checked_label(int64_t label, int64_t classes) {
  if (label < 0 || label >= classes) throw Error(fmt::format("label {} is outside the {} classes", label, classes));
  return label;
}

double row_lse(const HostTensor& logits, int64_t row) {
  const int64_t classes = logits.shape()[1];
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < classes; ++i) largest = std::max(largest, logits.get(row * classes + i));
  for (int64_t i = 0; i < classes; ++i) sum += std::exp(logits.get(row * classes + i) - largest);
  return largest + std::log(sum);
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &logits = in[0], &labels = in[1];
  const int64_t classes = logits.shape()[1];
  double sum = 0, weight = 0;
  for (int64_t row = 0; row < logits.shape()[0]; ++row) {
    const double lse = row_lse(logits, row);
    const int64_t label = labels.get_int(row);
    out[2].set(row, lse);
    if (ignored(node, label)) continue;
    sum += lse - logits.get(row * classes + checked_label(label, classes));
    weight += 1;
  }
  out[0].set(0, sum);
  out[1].set(0, weight);
}

// Through the lse of each row: dlse · softmax.
ValueId lse_gradient(VjpContext& c) {
  const int64_t rows = c.build.graph().value(c.input(0)).shape[0];
  const auto column = [&](ValueId x) { return c.build.add(OpKind::reshape, {x}, {{Attr::shape, std::vector<int64_t>{rows, 1}}}); };
  const ValueId softmax =
      c.build.add(OpKind::exp, {c.build.add(OpKind::sub, {c.build.cast(c.input(0), c.build.dtype(c.output(2))), column(c.output(2))})});
  return c.build.cast(c.build.add(OpKind::mul, {softmax, column(c.output_gradient(2))}), c.build.dtype(c.input(0)));
}

// The weight depends on the labels alone, so its gradient is zero.
void vjp(VjpContext& c) {
  ValueId gradient = c.output_gradient(2) == kNone ? kNone : lse_gradient(c);
  if (c.output_gradient(0) != kNone) {
    Attributes attributes;
    if (c.node.attributes.has(Attr::ignore_index)) attributes.set(Attr::ignore_index, c.node.attributes.get_int(Attr::ignore_index));
    const ValueId direct =
        c.build.add(OpKind::cross_entropy_grad, {c.output_gradient(), c.input(0), c.input(1), c.output(2)}, std::move(attributes));
    gradient = gradient == kNone ? direct : c.build.add(OpKind::add, {direct, gradient});
  }
  if (gradient != kNone) c.set(0, gradient);
}

std::vector<OutputType> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 4, 4);
  const Value& seed = operand(graph, node, 0, "seed");
  const Value& logits = check_logits(graph, node, 1);
  const Value& lse = operand(graph, node, 3, "lse");
  expect_shape(seed, {}, "seed");
  expect_dtype(seed, wide_dtype(logits.dtype), "seed");
  expect_shape(lse, {logits.shape[0]}, "lse");
  expect_dtype(lse, wide_dtype(logits.dtype), "lse");
  return {{logits.dtype, logits.shape}};
}

// seed · (softmax - one-hot); +0 in rows whose label is ignored.
void evaluate_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &logits = in[1], &labels = in[2], &lse = in[3];
  const double seed = in[0].get(0);
  const int64_t classes = logits.shape()[1];
  for (int64_t row = 0; row < logits.shape()[0]; ++row) {
    const bool skip = ignored(node, labels.get_int(row));
    const int64_t label = skip ? -1 : checked_label(labels.get_int(row), classes);
    for (int64_t i = 0; i < classes; ++i) {
      const double p = std::exp(logits.get(row * classes + i) - lse.get(row));
      out[0].set(row * classes + i, skip ? 0 : seed * (p - (i == label)));
    }
  }
}

int64_t workspace(const Graph& graph, const Node& node, int) { return cross_entropy_workspace(graph.value(node.inputs[0]).shape[0]); }

int64_t cuda_workspace(const Graph& graph, const Node& node) { return workspace(graph, node, 1); }

double flops(const Graph& graph, const Node& node) {
  const int logits = node.op == OpKind::cross_entropy ? 0 : 1;
  return 4.0 * static_cast<double>(elements(graph.value(node.inputs[logits]).shape));
}

}  // namespace

OpDef cross_entropy_def() {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.workspace = workspace;
  def.cuda_workspace = cuda_workspace;
  def.flops = flops;
  return def;
}

OpDef cross_entropy_grad_def() {
  OpDef def;
  def.infer = infer_grad;
  def.evaluate = evaluate_grad;
  def.in_place = {{0, 1}};
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
