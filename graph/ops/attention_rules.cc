#include "graph/ops/attention_rules.h"

#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

AttentionSizes attention_sizes(const Shape& q, const Shape& k) { return {q[0], q[1], k[1], q[2], k[2], q[3]}; }

AttentionSizes check_attention(const Graph& graph, const Node& node, int first, int mask) {
  node.attributes.get_double(Attr::scale);
  const Value& q = floating_operand(graph, node, first, "q");
  const Value& k = operand(graph, node, first + 1, "k");
  const Value& v = operand(graph, node, first + 2, "v");
  for (const Value* x : {&q, &k, &v}) {
    expect_rank(*x, 4, 4, "q, k and v");
    expect_dtype(*x, q.dtype, "q, k and v");
  }
  const AttentionSizes s = attention_sizes(q.shape, k.shape);
  expect_shape(k, {s.batch, s.kv_heads, s.keys, s.depth}, "k");
  expect_shape(v, k.shape, "v");
  if (s.kv_heads == 0 || s.heads % s.kv_heads != 0)
    throw Error(fmt::format("{} heads of q are not a multiple of the {} heads of k and v", s.heads, s.kv_heads));
  if (!has_input(node, mask)) return s;
  const Value& m = operand(graph, node, mask, "mask");
  const Shape full = {s.batch, s.heads, s.queries, s.keys};
  expect_dtype(m, q.dtype, "mask");
  if (!broadcasts_to(m.shape, full))
    throw Error(fmt::format("mask '{}' {} does not broadcast to {}", m.name, to_string(m.shape), to_string(full)));
  return s;
}

std::vector<double> attention_scores(const Node& node, const HostTensor& q, const HostTensor& k, const HostTensor* mask, int64_t b,
                                     int64_t h, int64_t i) {
  const AttentionSizes s = attention_sizes(q.shape(), k.shape());
  const double scale = node.attributes.get_double(Attr::scale);
  const bool causal = node.attributes.get_int(Attr::causal, 0) != 0;
  const int64_t kv_head = h / (s.heads / s.kv_heads);
  std::vector<double> scores(s.keys);
  for (int64_t j = 0; j < s.keys; ++j) {
    double dot = 0;
    for (int64_t d = 0; d < s.depth; ++d)
      dot += q.get(((b * s.heads + h) * s.queries + i) * s.depth + d) * k.get(((b * s.kv_heads + kv_head) * s.keys + j) * s.depth + d);
    scores[j] = dot * scale;
    if (mask) scores[j] += mask->get(broadcast_index({b, h, i, j}, mask->shape()));
    if (causal && j > i + s.keys - s.queries) scores[j] = -std::numeric_limits<double>::infinity();
  }
  return scores;
}

double attention_flops(const Node& node, const AttentionSizes& s) {
  const double full = 4.0 * static_cast<double>(s.batch * s.heads) * static_cast<double>(s.queries) * static_cast<double>(s.keys) *
                      static_cast<double>(s.depth);
  return node.attributes.get_int(Attr::causal, 0) ? full / 2 : full;
}

}  // namespace zeroplan
