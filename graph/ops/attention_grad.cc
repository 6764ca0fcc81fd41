// attention_grad: dy, q, k, v, y, lse, mask (optional) → dq, dk, dv; the probabilities are rebuilt from lse.
#include <cmath>

#include "base/error.h"
#include "graph/ops/attention_rules.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"
#include "graph/ops/workspace.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 6, 7);
  const AttentionSizes s = check_attention(graph, node, 1, 6);
  const Value& q = graph.value(node.inputs[1]);
  const Value& k = graph.value(node.inputs[2]);
  const std::string_view names[] = {"dy", "y", "lse"};
  const int positions[] = {0, 4, 5};
  const Shape shapes[] = {q.shape, q.shape, {s.batch, s.heads, s.queries}};
  for (int i = 0; i < 3; ++i) {
    const Value& x = operand(graph, node, positions[i], names[i]);
    expect_dtype(x, i == 2 ? wide_dtype(q.dtype) : q.dtype, names[i]);
    expect_shape(x, shapes[i], names[i]);
  }
  return {{q.dtype, q.shape}, {q.dtype, k.shape}, {q.dtype, k.shape}};
}

struct Sums {
  std::vector<double> dq, dk, dv;
};

double dot(const HostTensor& a, int64_t i, const HostTensor& b, int64_t k, int64_t count) {
  double sum = 0;
  for (int64_t d = 0; d < count; ++d) sum += a.get(i + d) * b.get(k + d);
  return sum;
}

// One query: p = exp(score - lse), dp = dy·vᵀ, ds = p·(dp - Σ dy·y); dv += p·dy, dq += scale·ds·k, dk += scale·ds·q.
void add_query(const Node& node, std::span<const HostTensor> in, const AttentionSizes& s, int64_t row, Sums& sums) {
  const HostTensor &dy = in[0], &q = in[1], &k = in[2], &v = in[3], &y = in[4], &lse = in[5];
  const int64_t b = row / (s.heads * s.queries), h = row / s.queries % s.heads, i = row % s.queries;
  const std::vector<double> scores = attention_scores(node, q, k, has_input(node, 6) ? &in[6] : nullptr, b, h, i);
  const double scale = node.attributes.get_double(Attr::scale);
  const int64_t query = row * s.depth;
  const double delta = dot(dy, query, y, query, s.depth);
  for (int64_t j = 0; j < s.keys; ++j) {
    if (std::isinf(scores[j])) continue;
    const int64_t key = ((b * s.kv_heads + h / (s.heads / s.kv_heads)) * s.keys + j) * s.depth;
    const double p = std::exp(scores[j] - lse.get(row));
    const double ds = p * (dot(dy, query, v, key, s.depth) - delta) * scale;
    for (int64_t d = 0; d < s.depth; ++d) {
      sums.dv[key + d] += p * dy.get(query + d);
      sums.dq[query + d] += ds * k.get(key + d);
      sums.dk[key + d] += ds * q.get(query + d);
    }
  }
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const AttentionSizes s = attention_sizes(in[1].shape(), in[2].shape());
  Sums sums = {std::vector<double>(out[0].count(), 0), std::vector<double>(out[1].count(), 0), std::vector<double>(out[2].count(), 0)};
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) add_query(node, in, s, row, sums);
  const std::vector<double>* results[] = {&sums.dq, &sums.dk, &sums.dv};
  for (int k = 0; k < 3; ++k)
    for (int64_t i = 0; i < out[k].count(); ++i) out[k].set(i, (*results[k])[i]);
}

// As in attention; lse (5) is read contiguously.
bool accepts(const Graph&, const Node&, int input, const Shape& shape, const Strides& strides) {
  if (input == 5) return is_contiguous(shape, strides);
  if (shape.empty() || shape.back() == 1 || strides.back() == 1) return true;
  return input == 6 && strides.back() == 0;
}

int64_t workspace(const Graph& graph, const Node& node, int threads) {
  const Value& q = graph.value(node.inputs[1]);
  return attention_grad_workspace(threads, elements(q.shape) / std::max<int64_t>(1, q.shape[3]), q.shape[3],
                                  dtype_bytes(wide_dtype(q.dtype)));
}

int64_t cuda_workspace(const Graph& graph, const Node& node) {
  const Shape& q = graph.value(node.inputs[1]).shape;
  return attention_grad_delta_bytes(q[0] * q[1] * q[2], dtype_bytes(wide_dtype(graph.value(node.inputs[1]).dtype)));
}

double flops(const Graph& graph, const Node& node) {
  return 2.5 * attention_flops(node, attention_sizes(graph.value(node.inputs[1]).shape, graph.value(node.inputs[2]).shape));
}

}  // namespace

OpDef attention_grad_def() {
  OpDef def;
  def.infer = infer;
  def.evaluate = evaluate;
  def.accepts = accepts;
  def.workspace = workspace;
  def.cuda_workspace = cuda_workspace;
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
