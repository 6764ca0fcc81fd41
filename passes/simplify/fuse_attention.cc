#include <cmath>

#include "passes/edit/graph_edits.h"
#include "passes/edit/producers.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"
#include "passes/simplify/attention_match.h"

namespace zeroplan {
namespace {

// Exporters write the scale as one or two factors in single precision; where their product is 1/√D up to that rounding, 1/√D is meant.
double meant_scale(double scale, int64_t head_width) {
  const double exact = 1 / std::sqrt(static_cast<double>(head_width));
  return std::abs(scale - exact) <= 4e-7 * exact ? exact : scale;
}

class AttentionFuser {
 public:
  explicit AttentionFuser(Graph& graph) : graph_(graph), edits_(graph), matcher_(graph), users_(graph.users()) {}

  bool run() {
    const std::set<ValueId> roots = root_values(graph_);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const std::optional<AttentionMatch> match = matcher_.match(id);
      if (match && !wanted_outside(match->probabilities, id, roots)) replace(id, *match);
    }
    return edits_.apply();
  }

 private:
  // The probabilities are needed as such: fusing would compute them twice.
  bool wanted_outside(NodeId softmax, NodeId product, const std::set<ValueId>& roots) const {
    const ValueId probabilities = graph_.nodes[softmax].outputs[0];
    if (roots.count(probabilities)) return true;
    for (NodeId user : users_[probabilities]) {
      const OpKind op = graph_.nodes[user].op;
      if (user != product && op != OpKind::is_nan && op != OpKind::where) return true;
    }
    return false;
  }

  void replace(NodeId id, const AttentionMatch& match) {
    const Shape old_shape = graph_.values[graph_.nodes[id].outputs[0]].shape;
    Builder build = edits_.build_before(id);
    ValueId q = build.transpose(match.q.base, match.q.permutation), k = build.transpose(match.k.base, match.k.permutation);
    ValueId v = match.v, mask = match.mask;
    const bool flat = old_shape.size() == 3;  // [B·H, T, D]
    if (flat) {
      const Shape batch = batch_and_heads(q);
      for (ValueId* x : {&q, &k, &v, &mask}) *x = split_first_axis(build, *x, batch);
    }
    if (!share_batch(build, q, k, v)) return edits_.discard();
    ungroup(build, k, v);
    std::vector<ValueId> inputs = {q, k, v};
    if (mask != kNone) inputs.push_back(mask);
    const Attributes attributes = {{Attr::scale, meant_scale(match.scale, graph_.values[q].shape.back())},
                                   {Attr::causal, int64_t{match.causal}}};
    if (!flat) {
      edits_.place();
      edits_.become(id, OpKind::attention, inputs, attributes);
      return;
    }
    const ValueId y = build.add_multi(OpKind::attention, inputs, attributes)[0];
    edits_.place();
    edits_.become(id, OpKind::reshape, {y}, {{Attr::shape, old_shape}});
  }

  // B and H where the three axes of q come from four, else every entry is a batch of one head.
  Shape batch_and_heads(ValueId q) const {
    const Shape& flat = graph_.values[q].shape;
    const Node* node = producer_of(graph_, q, OpKind::reshape);
    if (!node) return {flat[0], 1};
    const Shape& from = graph_.values[node->inputs[0]].shape;
    const bool merged = from.size() == 4 && from[0] * from[1] == flat[0] && from[2] == flat[1] && from[3] == flat[2];
    return merged ? Shape{from[0], from[1]} : Shape{flat[0], 1};
  }

  // Operands of one batch entry keep broadcasting.
  static ValueId split_first_axis(Builder& build, ValueId x, const Shape& batch) {
    if (x == kNone || build.shape(x).size() != 3) return x;
    const Shape shape = build.shape(x);
    if (shape[0] != batch[0] * batch[1]) return build.reshape(x, {shape[0], 1, shape[1], shape[2]});
    return build.reshape(x, {batch[0], batch[1], shape[1], shape[2]});
  }

  // matmul broadcasts any batch axis, attention only shares heads.
  static bool share_batch(Builder& build, ValueId q, ValueId k, ValueId v) {
    const Shape &a = build.shape(q), &b = build.shape(k), &c = build.shape(v);
    return a[0] == b[0] && b[0] == c[0] && b[1] == c[1] && b[1] != 0 && a[1] % b[1] == 0;
  }

  // Heads repeated by reshape(broadcast([B,Hk,1,S,D] → [B,Hk,G,S,D])): attention shares them by itself.
  void ungroup(Builder& build, ValueId& k, ValueId& v) const {
    const ValueId small_k = repeated_heads(k), small_v = repeated_heads(v);
    if (small_k == kNone || small_v == kNone) return;
    const Shape ks = build.shape(small_k), vs = build.shape(small_v);
    if (ks[1] != vs[1]) return;
    k = build.reshape(small_k, {ks[0], ks[1], ks[3], ks[4]});
    v = build.reshape(small_v, {vs[0], vs[1], vs[3], vs[4]});
  }

  ValueId repeated_heads(ValueId id) const {
    const Node* outer = producer_of(graph_, id, OpKind::reshape);
    const Node* repeat = outer ? producer_of(graph_, outer->inputs[0], OpKind::broadcast) : nullptr;
    if (!repeat) return kNone;
    const Shape &from = graph_.values[repeat->inputs[0]].shape, &to = graph_.values[repeat->outputs[0]].shape,
                &merged = graph_.values[id].shape;
    if (from.size() != 5 || to.size() != 5 || merged.size() != 4 || from[2] != 1) return kNone;
    const bool only_heads = from[0] == to[0] && from[1] == to[1] && from[3] == to[3] && from[4] == to[4];
    const bool merged_heads = merged[0] == to[0] && merged[1] == to[1] * to[2] && merged[2] == to[3] && merged[3] == to[4];
    return only_heads && merged_heads ? repeat->inputs[0] : kNone;
  }

  Graph& graph_;
  GraphEdits edits_;
  AttentionMatcher matcher_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

bool fuse_attention(Graph& graph, const CompileOptions&) { return AttentionFuser(graph).run(); }

}  // namespace zeroplan
