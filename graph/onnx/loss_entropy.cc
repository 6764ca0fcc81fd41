// Cross entropies of a loss, over the samples that count.
#include "graph/onnx/loss_form.h"

namespace zeroplan {
namespace {

using Kind = SampleAxis::Kind;

}  // namespace

// Outputs of a cross_entropy in which samples that do not count have the ignored label.
const std::vector<ValueId>& LossReader::chosen_entropy(NodeId id) {
  const Node node = build_.graph().nodes[id];
  const auto [entry, added] = entropies_.emplace(id, node.outputs);
  if (!added || !mask_) return entry->second;
  const SampleAxis rows = samples_[node.outputs[2]];
  if (rows.kind != Kind::axis && mask_->samples() > 1) {
    masked_ = false;
    return entry->second;
  }
  if (mask_->weighted()) return entry->second = weighted_entropy(node);
  Attributes attributes = node.attributes;
  if (!attributes.has(Attr::ignore_index)) attributes.set(Attr::ignore_index, kNoLabel);
  const ValueId labels = mask_->select(node.inputs[1], rows, static_cast<double>(attributes.get_int(Attr::ignore_index)));
  return entry->second = build_.add_multi(OpKind::cross_entropy, {node.inputs[0], labels}, attributes);
}

// The rows of a cross_entropy as terms: lse - the score of the label, +0 where that is ignored.
std::vector<ValueId> LossReader::weighted_entropy(const Node& node) {
  const ValueId scores = node.inputs[0], lse = node.outputs[2];
  const DType dtype = build_.dtype(scores), label_type = build_.dtype(node.inputs[1]);
  const int64_t rows = build_.shape(scores)[0];
  ValueId labels = node.inputs[1], ignored = kNone, counts = build_.constant(HostTensor::of(dtype, {rows}, std::vector<double>(rows, 1)));
  if (node.attributes.has(Attr::ignore_index)) {
    const auto index = static_cast<double>(node.attributes.get_int(Attr::ignore_index));
    ignored = build_.add(OpKind::equal, {labels, build_.scalar(index, label_type)});
    labels = build_.add(OpKind::where, {ignored, build_.scalar(0, label_type), labels});
    counts = build_.cast(build_.add(OpKind::logical_not, {ignored}), dtype);
  }
  const ValueId picked = build_.add(OpKind::gather, {scores, build_.reshape(labels, {rows, 1})},
                                    {{Attr::axis, int64_t{1}}, {Attr::axes, std::vector<int64_t>{0}}});
  ValueId terms = build_.add(OpKind::sub, {lse, build_.reshape(picked, {rows})});
  if (ignored != kNone) terms = build_.add(OpKind::where, {ignored, build_.scalar(0, dtype), terms});
  const SampleAxis& lie = samples_[lse];
  return {total(mask_->weigh(terms, lie)), total(mask_->weigh(counts, lie)), lse};
}

// Sums over samples that were folded before the scores would not be sums.
bool LossReader::has_rows_of_samples(const Node& entropy) const { return samples_[entropy.inputs[0]].kind != Kind::folded; }

std::optional<LossForm> LossReader::entropy_sum(ValueId id, NodeId producer) {
  const Node& node = build_.graph().nodes[producer];
  if (node.outputs[0] != id || !has_rows_of_samples(node)) return std::nullopt;
  const std::string origin = node.origin;
  return LossForm::of_sum(chosen_entropy(producer)[0], "sum of cross entropies", origin);
}

std::optional<LossForm> LossReader::entropy_mean(const Node& node) {
  const NodeId producer = build_.graph().values[node.inputs[0]].producer;
  if (producer == kNone) return std::nullopt;
  const Node entropy = build_.graph().nodes[producer];
  if (entropy.op != OpKind::cross_entropy || node.inputs[0] != entropy.outputs[0] || node.inputs[1] != entropy.outputs[1] ||
      !has_rows_of_samples(entropy))
    return std::nullopt;
  const std::vector<ValueId>& outputs = chosen_entropy(producer);
  LossForm form = LossForm::of_sum(outputs[0], "mean of cross entropies over the labels that count", node.origin);
  form.divisor = LossForm::Divisor::data;
  form.weight = outputs[1];
  form.denominator = node.inputs[1];
  return form;
}

}  // namespace zeroplan
