#include <algorithm>

#include "base/decimal.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/producers.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

// What a chain was recognised as: (x - mean) * rstd or x * rms, then gamma and beta where it has them.
struct Norm {
  OpKind op{};
  ValueId x = kNone;
  double epsilon = 0;
  ValueId gamma = kNone;  // kNone: ones
  ValueId beta = kNone;
};

class NormMatcher {
 public:
  explicit NormMatcher(const Graph& graph) : graph_(graph) {}

  // The longest form that ends in `id`.
  std::optional<Norm> match(ValueId id) const {
    if (const Node* node = producer_of(graph_, id, OpKind::add))
      for (int i : {0, 1}) {
        std::optional<Norm> norm = scaled(node->inputs[i]);
        if (!norm || norm->op != OpKind::layer_norm || !is_channel(node->inputs[1 - i], norm->x)) continue;
        norm->beta = node->inputs[1 - i];
        return norm;
      }
    if (std::optional<Norm> norm = scaled(id)) return norm;
    return normalized(id);
  }

 private:
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }

  // One number per element of the last axis of x.
  bool is_channel(ValueId id, ValueId x) const {
    return !shape(id).empty() && !shape(x).empty() && shape(id).size() <= shape(x).size() && shape(id).back() == shape(x).back() &&
           elements(shape(id)) == shape(x).back();
  }

  std::optional<Norm> scaled(ValueId id) const {
    const Node* node = producer_of(graph_, id, OpKind::mul);
    if (!node) return std::nullopt;
    for (int i : {0, 1}) {
      std::optional<Norm> norm = normalized(node->inputs[i]);
      if (!norm || !is_channel(node->inputs[1 - i], norm->x)) continue;
      norm->gamma = node->inputs[1 - i];
      return norm;
    }
    return std::nullopt;
  }

  // d / sqrt(mean(d²) + eps), d · (1 / sqrt(…)) and their likes.
  std::optional<Norm> normalized(ValueId id) const {
    const Node* node = producer_of(graph_, id);
    if (!node) return std::nullopt;
    if (node->op == OpKind::div) return from_parts(node->inputs[0], root_of(node->inputs[1]));
    if (node->op != OpKind::mul) return std::nullopt;
    for (int i : {0, 1})
      if (std::optional<Norm> norm = from_parts(node->inputs[i], inverse_root_of(node->inputs[1 - i]))) return norm;
    return std::nullopt;
  }

  // v of sqrt(v).
  ValueId root_of(ValueId id) const {
    if (const Node* node = producer_of(graph_, id, OpKind::sqrt)) return node->inputs[0];
    const std::optional<ScalarOperand> power = with_scalar(graph_, id, OpKind::pow);
    return power && power->c == 0.5 ? power->x : kNone;
  }

  // v of 1 / sqrt(v).
  ValueId inverse_root_of(ValueId id) const {
    const Node* node = producer_of(graph_, id);
    if (!node) return kNone;
    if (node->op == OpKind::reciprocal) return root_of(node->inputs[0]);
    if (node->op == OpKind::sqrt) {
      const Node* inner = producer_of(graph_, node->inputs[0], OpKind::reciprocal);
      return inner ? inner->inputs[0] : kNone;
    }
    if (node->op == OpKind::div && scalar_constant(graph_, node->inputs[0]) == 1.0) return root_of(node->inputs[1]);
    const std::optional<ScalarOperand> power = with_scalar(graph_, id, OpKind::pow);
    return power && power->c == -0.5 ? power->x : kNone;
  }

  std::optional<Norm> from_parts(ValueId d, ValueId variance) const {
    if (variance == kNone) return std::nullopt;
    const std::optional<ScalarOperand> sum = with_scalar(graph_, variance, OpKind::add);
    if (!sum) return std::nullopt;
    const ValueId squares = mean_operand(sum->x);
    const ValueId base = squares == kNone ? kNone : square_operand(squares);
    if (base == kNone) return std::nullopt;
    const ValueId x = centred_operand(d);
    if (x != kNone && centred_operand(base) == x) return Norm{OpKind::layer_norm, x, sum->c};
    if (base == d) return Norm{OpKind::rms_norm, d, sum->c};
    return std::nullopt;
  }

  // x of reduce_mean(x) over the last axis, axis kept.
  ValueId mean_operand(ValueId id) const {
    const Node* node = producer_of(graph_, id, OpKind::reduce_mean);
    if (!node || node->attributes.get_int(Attr::keepdims, 1) != 1) return kNone;
    const int64_t last = static_cast<int64_t>(shape(node->inputs[0]).size()) - 1;
    return node->attributes.get_ints(Attr::axes) == std::vector<int64_t>{last} ? node->inputs[0] : kNone;
  }

  ValueId square_operand(ValueId id) const {
    const Node* node = producer_of(graph_, id);
    if (node && node->op == OpKind::mul && same_difference(node->inputs[0], node->inputs[1])) return node->inputs[0];
    const std::optional<ScalarOperand> power = with_scalar(graph_, id, OpKind::pow);
    return power && power->c == 2.0 ? power->x : kNone;
  }

  // x of x - mean(x).
  ValueId centred_operand(ValueId id) const {
    const Node* node = producer_of(graph_, id, OpKind::sub);
    return node && mean_operand(node->inputs[1]) == node->inputs[0] ? node->inputs[0] : kNone;
  }

  // The same value, or the difference to the mean computed twice.
  bool same_difference(ValueId a, ValueId b) const {
    return a == b || (centred_operand(a) != kNone && centred_operand(a) == centred_operand(b));
  }

  const Graph& graph_;
};

class NormFuser {
 public:
  explicit NormFuser(Graph& graph) : graph_(graph), edits_(graph), covered_(graph.nodes.size(), false) {}

  // From the end, so that the longest form of a chain is met first.
  bool run() {
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()) - 1; id >= 0; --id) {
      const OpKind op = graph_.nodes[id].op;
      if (covered_[id] || (op != OpKind::add && op != OpKind::mul && op != OpKind::div)) continue;
      if (const std::optional<Norm> norm = NormMatcher(graph_).match(graph_.nodes[id].outputs[0])) replace(id, *norm);
    }
    return edits_.apply();
  }

 private:
  void replace(NodeId id, const Norm& norm) {
    const std::vector<ValueId> old = graph_.nodes[id].inputs;
    Builder build = edits_.build_before(id);
    const Shape channels = {graph_.values[norm.x].shape.back()};
    const ValueId gamma = norm.gamma == kNone ? ones(build, channels, norm.x) : build.reshape(norm.gamma, channels);
    std::vector<ValueId> inputs = {norm.x, gamma};
    if (norm.beta != kNone) inputs.push_back(build.reshape(norm.beta, channels));
    edits_.place();
    if (edits_.become(id, norm.op, inputs, {{Attr::epsilon, meant_decimal(norm.epsilon)}})) cover(old);
  }

  ValueId ones(Builder& build, const Shape& shape, ValueId like) const {
    HostTensor tensor(graph_.values[like].dtype, shape);
    for (int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, 1.0);
    return build.constant(std::move(tensor), "ones");
  }

  // The shorter forms inside the one just replaced are not worth a node of their own.
  void cover(const std::vector<ValueId>& inputs) {
    for (ValueId input : inputs) {
      const Node* node = producer_of(graph_, input);
      if (!node || (node->op != OpKind::mul && node->op != OpKind::div)) continue;
      if (!NormMatcher(graph_).match(input)) continue;
      covered_[graph_.values[input].producer] = true;
      cover(node->inputs);
    }
  }

  Graph& graph_;
  GraphEdits edits_;
  std::vector<bool> covered_;
};

}  // namespace

bool fuse_norm(Graph& graph, const CompileOptions&) { return NormFuser(graph).run(); }

}  // namespace zeroplan
