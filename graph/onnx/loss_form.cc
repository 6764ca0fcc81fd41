#include "graph/onnx/loss_form.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace zeroplan {
namespace {

using Kind = SampleAxis::Kind;
using Divisor = LossForm::Divisor;

}  // namespace

LossForm LossForm::of_sum(ValueId sum, std::string description, const std::string& origin) {
  LossForm form;
  form.sum = sum;
  form.description = std::move(description);
  form.origin = origin;
  return form;
}

LossReader::LossReader(FoldingBuilder& build, const std::map<ValueId, int>& sample_axes, SampleMask* mask, bool whole)
    : build_(build),
      samples_(find_sample_axes(build.graph(), sample_axes)),
      mask_(mask && mask->needed() ? mask : nullptr),
      whole_(whole) {}

// Recursion is bounded: each step goes to an operand, at most kDepth times.
std::optional<LossForm> LossReader::analyze(ValueId id, int depth) {
  constexpr int kDepth = 64;
  if (depth > kDepth) return std::nullopt;
  const auto known = read_.find(id);
  if (known != read_.end()) return known->second;
  return read_[id] = read_node(id, depth);
}

std::optional<LossForm> LossReader::read_node(ValueId id, int depth) {
  const NodeId producer = build_.graph().values[id].producer;
  if (producer == kNone || elements(build_.shape(id)) != 1) return std::nullopt;
  const Node node = build_.graph().nodes[producer];
  switch (node.op) {
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::cast:
    case OpKind::copy:
    case OpKind::broadcast: return analyze(node.inputs[0], depth + 1);
    case OpKind::neg: return scaled(analyze(node.inputs[0], depth + 1), -1);
    case OpKind::mul: return product(node, depth);
    case OpKind::div: return quotient(node, depth);
    case OpKind::add: return combined(node, 1, depth);
    case OpKind::sub: return combined(node, -1, depth);
    case OpKind::reduce_mean:
    case OpKind::reduce_sum: return reduction(node, depth);
    case OpKind::cross_entropy: return entropy_sum(id, producer);
    default: return std::nullopt;
  }
}

std::optional<double> LossReader::constant_scalar(ValueId id) const {
  if (!build_.is_constant(id) || elements(build_.shape(id)) != 1) return std::nullopt;
  return build_.graph().values[id].constant.get(0);
}

ValueId LossReader::times(ValueId x, double factor) {
  return factor == 1 ? x : build_.add(OpKind::mul, {x, build_.scalar(factor, build_.dtype(x))});
}

ValueId LossReader::total(ValueId x) {
  const Shape shape = build_.shape(x);
  if (shape.empty()) return x;
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return build_.add(OpKind::reduce_sum, {x}, {{Attr::axes, axes}, {Attr::keepdims, int64_t{0}}});
}

ValueId LossReader::chosen(ValueId x) {
  const SampleAxis& lie = samples_[x];
  if (!mask_ || lie.kind == Kind::none) return x;
  if (lie.kind == Kind::axis || mask_->samples() == 1) return mask_->weigh(x, lie);
  masked_ = false;
  return x;
}

// What the reduction reads, or, where the samples are gone from that by the same reduction, that one again over the terms that count.
ValueId LossReader::chosen_operand(NodeId reduction) {
  const ValueId x = build_.graph().nodes[reduction].inputs[0];
  if (!mask_ || samples_[x].kind != Kind::folded) return chosen(x);
  const Node inner = build_.graph().nodes[build_.graph().values[x].producer];
  return build_.add(inner.op, {chosen(inner.inputs[0])}, inner.attributes);
}

std::optional<LossForm> LossReader::scaled(std::optional<LossForm> form, double factor) {
  if (!form || factor == 1) return form;
  for (double& f : form->factors) f *= factor;
  form->sum = times(form->sum, factor);
  return form;
}

std::optional<LossForm> LossReader::product(const Node& node, int depth) {
  for (int i = 0; i < 2; ++i)
    if (const auto factor = constant_scalar(node.inputs[i])) return scaled(analyze(node.inputs[1 - i], depth + 1), *factor);
  return std::nullopt;
}

std::optional<LossForm> LossReader::quotient(const Node& node, int depth) {
  if (const auto divisor = constant_scalar(node.inputs[1])) return scaled(analyze(node.inputs[0], depth + 1), 1 / *divisor);
  if (auto form = entropy_mean(node)) return form;
  const ValueId total = data_total(node.inputs[1]);
  if (total == kNone) return std::nullopt;
  std::optional<LossForm> form = analyze(node.inputs[0], depth + 1);
  if (!form) return std::nullopt;
  return over_data(node, total, std::move(*form));
}

std::optional<LossForm> LossReader::over_data(const Node& node, ValueId total, LossForm form) {
  const Kind kind = samples_[total].kind;
  form.origin = node.origin;
  if (kind == Kind::none) {  // the same number in each micro-batch
    form.sum = build_.add(OpKind::div, {build_.reshape(form.sum, {}), build_.reshape(node.inputs[1], {})});
    return form;
  }
  if (form.divisor != Divisor::none || kind == Kind::mixed) return std::nullopt;
  form.divisor = Divisor::data;
  form.denominator = node.inputs[1];
  form.weight = build_.reshape(masked_total(build_.graph().values[total].producer, node.inputs[1]), {});
  form.description += " over a sum of the data";
  return form;
}

// The sum `total`, or what its reshapes and casts made of it, over the samples that count.
ValueId LossReader::masked_total(NodeId reduction, ValueId total) {
  const auto [entry, added] = totals_.emplace(total, total);
  if (!added || !mask_) return entry->second;
  const Node node = build_.graph().nodes[reduction];
  if (node.op == OpKind::cross_entropy) return entry->second = chosen_entropy(reduction)[1];
  const ValueId terms = chosen_operand(reduction);
  return entry->second = build_.cast(build_.add(node.op, {terms}, node.attributes), build_.dtype(total));
}

// The sum behind a total that depends on inputs and constants alone, such as the number of tokens that count: it adds up over
// micro-batches. Else kNone.
ValueId LossReader::data_total(ValueId id) const {
  const Graph& graph = build_.graph();
  if (elements(graph.values[id].shape) != 1 || !is_floating(graph.values[id].dtype)) return kNone;
  const auto passes = [](OpKind op) { return op == OpKind::reshape || op == OpKind::cast || op == OpKind::broadcast; };
  NodeId producer = graph.values[id].producer;
  while (producer != kNone && passes(graph.nodes[producer].op)) {
    id = graph.nodes[producer].inputs[0];
    producer = graph.values[id].producer;
  }
  if (producer == kNone) return kNone;
  const Node& node = graph.nodes[producer];
  if (node.op == OpKind::cross_entropy) return id == node.outputs[1] ? id : kNone;
  if (node.op != OpKind::reduce_sum || depends_on_parameters(id)) return kNone;
  const bool twice = samples_[node.inputs[0]].kind == Kind::folded;
  return twice && !folded_by(node.inputs[0], node.op) ? kNone : id;
}

bool LossReader::depends_on_parameters(ValueId id) const {
  const Graph& graph = build_.graph();
  std::vector<bool> trained(graph.values.size(), false);
  for (size_t i = 0; i < trained.size(); ++i) trained[i] = graph.values[i].kind == ValueKind::parameter;
  for (const Node& node : graph.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return in != kNone && trained[in]; });
    for (ValueId out : node.outputs) trained[out] = any;
  }
  return trained[id];
}

std::optional<LossForm> LossReader::reduction(const Node& node, int depth) {
  const ValueId x = node.inputs[0];
  const int64_t count = elements(build_.shape(x));
  const Kind from = samples_[x].kind;
  if (count == 1 && from != Kind::axis)
    if (auto inner = analyze(x, depth + 1)) return inner;
  const bool mean = node.op == OpKind::reduce_mean;
  if (from == Kind::folded && !folded_by(x, node.op)) return std::nullopt;
  const NodeId id = build_.graph().values[node.outputs[0]].producer;
  LossForm form =
      LossForm::of_sum(total(chosen_operand(id)), fmt::format("{} over {} elements", mean ? "mean" : "sum", count), node.origin);
  if (!mean && from != Kind::none) return form;
  form.divisor = Divisor::constant;
  form.by_samples = from != Kind::none;
  form.full = mean ? static_cast<double>(count) : 1;  // a sum over weights is the same in each micro-batch
  return form;
}

// Samples are gone from x by the same reduction: the two in a row are one.
bool LossReader::folded_by(ValueId x, OpKind op) const {
  const NodeId producer = build_.graph().values[x].producer;
  if (producer == kNone || build_.graph().nodes[producer].op != op) return false;
  return samples_[build_.graph().nodes[producer].inputs[0]].kind == Kind::axis;
}

// a + factor · b, where both are divided by the same.
LossForm LossReader::joined(LossForm a, const LossForm& b, double factor) {
  a.factors.insert(a.factors.end(), b.factors.begin(), b.factors.end());
  a.sum = build_.add(OpKind::add, {build_.reshape(a.sum, {}), build_.reshape(times(b.sum, factor), {})});
  a.description += " + " + b.description;
  return a;
}

// Divided already, as can be where there is one micro-batch.
LossForm LossReader::closed(LossForm form) {
  const DType dtype = build_.dtype(form.sum);
  ValueId weight = form.weight;
  if (form.divisor == Divisor::constant && form.by_samples && mask_)
    weight = times(mask_->count(dtype), form.full / static_cast<double>(mask_->samples()));
  form.sum = build_.reshape(form.sum, {});
  form.sum = weight == kNone ? times(form.sum, 1 / form.full) : build_.add(OpKind::div, {form.sum, build_.reshape(weight, {})});
  form.divisor = Divisor::constant;
  form.full = 1;
  form.by_samples = false;
  form.weight = form.denominator = kNone;
  return form;
}

std::optional<LossForm> LossReader::combined(const Node& node, double sign, int depth) {
  std::optional<LossForm> a = analyze(node.inputs[0], depth + 1), b = analyze(node.inputs[1], depth + 1);
  constexpr size_t kMostTerms = 4096;
  if (!a || !b || a->factors.size() + b->factors.size() > kMostTerms) return std::nullopt;
  const bool same = a->divisor == b->divisor && a->denominator == b->denominator;
  if (!same && whole_) return joined(closed(std::move(*a)), closed(std::move(*b)), sign);
  if (!same) {
    conflict_ =
        fmt::format("nodes '{}' ({}) and '{}' ({}) are divided by different numbers", a->origin, a->description, b->origin, b->description);
    return std::nullopt;
  }
  if (a->divisor != Divisor::constant) return joined(std::move(*a), *b, sign);
  if (a->by_samples != b->by_samples) {  // a term without samples counts as often as samples do
    LossForm& fixed = a->by_samples ? *b : *a;
    if (mask_) {
      const DType dtype = build_.dtype(fixed.sum);
      const ValueId part = times(mask_->count(dtype), 1 / static_cast<double>(mask_->samples()));
      fixed.sum = build_.add(OpKind::mul, {build_.reshape(fixed.sum, {}), part});
    }
    a->by_samples = true;
  }
  return joined(std::move(*a), *b, sign * (a->full / b->full));
}

}  // namespace zeroplan
