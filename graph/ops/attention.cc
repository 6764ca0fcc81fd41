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
  return {{q.dtype, q.shape}, {wide_dtype(q.dtype), {s.batch, s.heads, s.queries}}};
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

// k or v with each head as often as heads of q share it.
ValueId for_every_head(VjpContext& c, ValueId x, int64_t heads) {
  const Shape s = c.build.shape(x);
  if (s[1] == heads) return x;
  const Shape shared = {s[0], s[1], heads / s[1], s[2], s[3]};
  const ValueId apart = c.build.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  return c.build.reshape(c.build.add(OpKind::broadcast, {apart}, {{Attr::shape, shared}}), {s[0], heads, s[2], s[3]});
}

// What hides later keys, where the node is causal: 0 or -∞.
ValueId causal_bias(VjpContext& c, int64_t queries, int64_t keys) {
  HostTensor bias(c.build.dtype(c.output(1)), {queries, keys});
  for (int64_t i = 0; i < bias.count(); ++i)
    if (i % keys > i / keys + keys - queries) bias.set(i, -std::numeric_limits<double>::infinity());
  return c.build.constant(std::move(bias));
}

// p (dy·vᵀ - Σ dy·y) with the probabilities p = exp(scores - lse), which are built here in full: masks are rarely trained.
ValueId mask_gradient(VjpContext& c) {
  const auto add = [&](OpKind op, ValueId a, ValueId b) { return c.build.add(op, {a, b}); };
  const DType dtype = c.build.dtype(c.output(1));
  const auto wide = [&](ValueId x) { return c.build.cast(x, dtype); };
  const ValueId q = wide(c.input(0)), dy = wide(c.output_gradient());
  const Shape s = c.build.shape(q);
  const int64_t keys = c.build.shape(c.input(1))[2];
  const ValueId k = for_every_head(c, wide(c.input(1)), s[1]), v = for_every_head(c, wide(c.input(2)), s[1]);
  const ValueId scale = c.build.scalar(c.node.attributes.get_double(Attr::scale), dtype);
  ValueId scores = add(OpKind::add, add(OpKind::mul, add(OpKind::matmul, q, c.build.transpose_last_two(k)), scale), wide(c.input(3)));
  if (c.node.attributes.get_int(Attr::causal, 0)) scores = add(OpKind::add, scores, causal_bias(c, s[2], keys));
  const ValueId lse = c.build.reshape(c.output(1), {s[0], s[1], s[2], 1}), none = c.build.scalar(0, dtype);
  const ValueId hidden = add(OpKind::equal, lse, c.build.scalar(-std::numeric_limits<double>::infinity(), dtype));
  const ValueId p = c.build.add(OpKind::where, {hidden, none, c.build.add(OpKind::exp, {add(OpKind::sub, scores, lse)})});
  const Attributes over = {{Attr::axes, std::vector<int64_t>{3}}, {Attr::keepdims, int64_t{1}}};
  const ValueId mean = c.build.add(OpKind::reduce_sum, {add(OpKind::mul, dy, wide(c.output(0)))}, over);
  const ValueId slope = add(OpKind::sub, add(OpKind::matmul, dy, c.build.transpose_last_two(v)), mean);
  return c.build.cast(c.build.sum_to(add(OpKind::mul, p, slope), Shape(c.build.shape(c.input(3)))), c.build.dtype(c.input(3)));
}

void vjp(VjpContext& c) {
  if (c.output_gradient(1) != kNone) throw Error("attention has no gradient through its lse output");
  if (c.needs(3)) c.set(3, mask_gradient(c));
  if (!c.needs(0) && !c.needs(1) && !c.needs(2)) return;
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
  return attention_workspace(threads, q.shape[3], dtype_bytes(wide_dtype(q.dtype)));
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
