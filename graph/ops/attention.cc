// attention: q, k, v, mask (optional) → y, lse. y = softmax(scale·q·kᵀ + mask)·v without storing the scores; lse is their log-sum-exp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "graph/ops/attention_rules.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"
#include "graph/ops/workspace.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 4);
  const AttentionSizes s = check_attention(graph, node, 0, 3);
  const Value& q = graph.value(node.inputs[0]);
  return {{q.dtype, q.shape}, {q.dtype, {s.batch, s.heads, s.queries}}};
}

double log_sum_exp(const std::vector<double>& scores) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const double score : scores) largest = std::max(largest, score);
  if (std::isinf(largest) && largest < 0) return largest;
  for (const double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

// A query without a visible key gives y = 0 and lse = -inf.
void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &q = in[0], &k = in[1], &v = in[2];
  const AttentionSizes s = attention_sizes(q.shape(), k.shape());
  const HostTensor* mask = has_input(node, 3) ? &in[3] : nullptr;
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t b = row / (s.heads * s.queries), h = row / s.queries % s.heads, i = row % s.queries;
    const std::vector<double> scores = attention_scores(node, q, k, mask, b, h, i);
    const double lse = log_sum_exp(scores);
    const int64_t values = (b * s.kv_heads + h / (s.heads / s.kv_heads)) * s.keys * s.depth;
    for (int64_t d = 0; d < s.depth; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < s.keys; ++j)
        if (!std::isinf(scores[j])) sum += std::exp(scores[j] - lse) * v.get(values + j * s.depth + d);
      out[0].set(row * s.depth + d, sum);
    }
    out[1].set(row, lse);
  }
}

void vjp(VjpContext& c) {
  if (c.output_gradient(1) != kNone) throw Error("attention has no gradient through its lse output");
  if (c.needs(3))
    throw Error("attention has no gradient for its mask; a trainable bias needs the unfused form (matmul, add, softmax, matmul)");
  Attributes attributes = {{Attr::scale, c.node.attributes.get_double(Attr::scale)},
                           {Attr::causal, c.node.attributes.get_int(Attr::causal, 0)}};
  std::vector<ValueId> inputs = {c.output_gradient(), c.input(0), c.input(1), c.input(2), c.output(0), c.output(1)};
  if (c.input(3) != kNone) inputs.push_back(c.input(3));
  const std::vector<ValueId> grads = c.build.add_multi(OpKind::attention_grad, std::move(inputs), std::move(attributes));
  for (int i = 0; i < 3; ++i) c.set(i, grads[i]);
}

// mask: the last axis may be broadcast. The others: the depth is contiguous. Everything else is free.
bool accepts(const Graph&, const Node&, int input, const Shape& shape, const Strides& strides) {
  if (shape.empty() || shape.back() == 1 || strides.back() == 1) return true;
  return input == 3 && strides.back() == 0;
}

int64_t workspace(const Graph& graph, const Node& node, int threads) {
  const Value& q = graph.value(node.inputs[0]);
  return attention_workspace(threads, q.shape[3], dtype_bytes(q.dtype));
}

double flops(const Graph& graph, const Node& node) {
  return attention_flops(node, attention_sizes(graph.value(node.inputs[0]).shape, graph.value(node.inputs[1]).shape));
}

}  // namespace

OpDef attention_def() {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.accepts = accepts;
  def.workspace = workspace;
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
