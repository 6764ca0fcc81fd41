#include "graph/onnx/import_loss.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"

namespace zeroplan {

void LossImport::run() {
  const ValueId output = decoder_.find(spec_.output);
  if (output == kNone) throw Error(fmt::format("output '{}' is not computed by the model", spec_.output));
  const std::vector<SampleAxis> once = find_sample_axes(graph_, sample_axes(decoder_, dims_));
  check_apart(graph_, once[output], options_.micro_batches);
  const MoreSamples more = read_more(output, once);
  if (!options_.sample_weight.empty() && !unmasked_.empty()) throw Error("--sample-weight: " + unmasked_);
  find_batch_statistics();
  decoder_.build().set_origin("loss");
  if (spec_.kind == LossSpec::Kind::output) {
    check_output(output);
    return attach(output, more);
  }
  find_probabilities(output);
  const ValueId labels = label_input(output, more.lie);
  attach(build_loss(decoder_.build(), spec_, output, labels), more);
}

// One micro-batch need not treat its samples apart; then those that do not count cannot be left out.
MoreSamples LossImport::read_more(ValueId output, const std::vector<SampleAxis>& once) {
  const MoreSamples none{once[output], {}};
  if (dims_.sample_symbol.empty() || dims_.samples < 1 || (options_.micro_batches == 1 && dims_.samples == 1)) return none;
  const SampleReading reading{graph_, output, once, dims_.samples};
  if (options_.micro_batches > 1) return read_more_samples(source_, reading);
  try {
    return read_more_samples(source_, reading);
  } catch (const Error& error) {
    unmasked_ = error.message();
    return none;
  }
}

// What fills up a part batch would enter them.
void LossImport::find_batch_statistics() {
  for (const Node& node : graph_.nodes)
    if (node.op == OpKind::batch_norm) unmasked_ = fmt::format("node '{}' takes statistics of all samples of a batch", node.origin);
}

// Classifiers whose file ends in probabilities: the built-ins start from scores, or from logarithms.
void LossImport::find_probabilities(ValueId output) {
  NodeId producer = graph_.value(output).producer;
  const auto moves = [](OpKind op) { return op == OpKind::reshape || op == OpKind::transpose || op == OpKind::cast; };
  while (producer != kNone && moves(graph_.nodes[producer].op)) producer = graph_.value(graph_.nodes[producer].inputs[0]).producer;
  if (producer == kNone) return;
  const OpKind op = graph_.nodes[producer].op;
  const bool logits = spec_.kind == LossSpec::Kind::bce_with_logits && op == OpKind::sigmoid;
  if (!logits && !(spec_.has_classes() && op == OpKind::softmax)) return;
  remarks_.push_back(fmt::format(
      "--loss: output '{}' is made of probabilities by node '{}', but the loss takes {}; train on what that node reads, as an output of "
      "the model, or state the loss of probabilities by --loss-model",
      spec_.output, graph_.nodes[producer].origin, spec_.kind == LossSpec::Kind::nll ? "their logarithms" : "the scores before them"));
}

void LossImport::attach(ValueId loss, const MoreSamples& more) {
  SampleMask mask(decoder_.build(), dims_.samples, unmasked_.empty(), weight_input());
  LossReading reading{options_.micro_batches, sample_axes(decoder_, dims_), more.twice, &mask};
  const AttachedLoss attached = attach_loss(decoder_.build(), loss, reading);
  graph_.loss = attached.loss;
  if (attached.masked) mask_ = mask.input();
  const bool whole_windows = !graph_.statistics.empty() || (options_.sync_bn && options_.micro_batches > 1);
  if (attached.masked || (dims_.samples <= 1 && !whole_windows)) return unmasked_.clear();
  if (unmasked_.empty()) unmasked_ = "the loss is no mean or sum of terms that each belong to one sample";
  unmasked_ = "a last batch that is not full is left out, as its samples cannot be told apart: " + unmasked_;
}

void LossImport::check_output(ValueId output) const {
  const Value& value = graph_.value(output);
  if (is_floating(value.dtype) && elements(value.shape) == 1) return;
  throw Error(fmt::format(
      "output '{0}' is {1} of shape {2}; a loss is one floating-point number: give it, or have one built over the output, with --loss "
      "'softmax_cross_entropy({0}, labels)' or --loss 'mse({0}, target)'",
      spec_.output, type_name(value.dtype), to_string(value.shape)));
}

// The model's own input of that name, or a new one.
ValueId LossImport::label_input(ValueId scores, const SampleAxis& lie) {
  const auto rank = static_cast<int64_t>(graph_.value(scores).shape.size());
  if (spec_.has_classes() && (spec_.axis < -rank || spec_.axis >= rank))
    throw Error(fmt::format("--loss: axis={} is outside output '{}' of shape {}; give one from {} to {}", spec_.axis, spec_.output,
                            to_string(graph_.value(scores).shape), -rank, rank - 1));
  const Shape shape = label_shape(spec_, graph_.value(scores).shape);
  const int along = scores_axis(scores, lie);
  if (spec_.has_classes()) classes_ = elements(graph_.value(scores).shape) / std::max<int64_t>(1, elements(shape));
  const ValueId known = decoder_.find(spec_.labels);
  if (known != kNone) {
    check_known(known, shape, along);
    if (graph_.value(known).kind != ValueKind::input)
      remarks_.push_back(fmt::format("--loss: '{0}' is {1}, so that no data is read for it; another name would be that of a file of data",
                                     spec_.labels, what_is(known)));
    return known;
  }
  if (!is_floating(graph_.value(scores).dtype))
    throw Error(fmt::format("--loss: output '{}' holds no floating-point values", spec_.output));
  Value value;
  value.name = spec_.labels;
  value.dtype = spec_.has_classes() ? DType::i64 : options_.precision;
  value.shape = shape;
  value.kind = ValueKind::input;
  const int axis = label_axis(shape, along);
  const ValueId id = decoder_.add_input(std::move(value));
  dims_.inputs.push_back({spec_.labels, 0, shape, axis});
  return id;
}

// kNone: every sample counts once.
ValueId LossImport::weight_input() {
  const std::string& name = options_.sample_weight;
  if (name.empty()) return kNone;
  if (dims_.samples < 1) throw Error("--sample-weight: no input of the model has an axis of samples; state it with --sample-axis");
  if (const ValueId known = decoder_.find(name); known != kNone) {
    const Value& value = graph_.value(known);
    if (value.kind == ValueKind::input && is_floating(value.dtype) && value.shape == Shape{dims_.samples} && axis_of(name) == 0)
      return known;
    throw Error(
        fmt::format("--sample-weight: '{}' is a value of the model, and no input of one floating-point number for each sample; "
                    "choose another name, which is that of the data's file",
                    name));
  }
  Value value;
  value.name = name;
  value.dtype = options_.precision;
  value.shape = {dims_.samples};
  value.kind = ValueKind::input;
  const ValueId id = decoder_.add_input(std::move(value));
  dims_.inputs.push_back({name, 0, {dims_.samples}, 0});
  return id;
}

std::string LossImport::what_is(ValueId labels) const {
  switch (graph_.value(labels).kind) {
    case ValueKind::input: return "an input of the model";
    case ValueKind::parameter: return "a weight of the model";
    case ValueKind::constant: return "a constant of the model";
    default: return "a value that the model computes";
  }
}

void LossImport::check_known(ValueId labels, const Shape& shape, int along) const {
  const Value& value = graph_.value(labels);
  if (value.shape != shape || is_floating(value.dtype) == spec_.has_classes())
    throw Error(fmt::format("--loss: '{}' is {}, {} of shape {}, but the loss needs {} of shape {}{}", spec_.labels, what_is(labels),
                            type_name(value.dtype), to_string(value.shape), spec_.has_classes() ? "integers" : "floating-point values",
                            to_string(shape),
                            value.kind == ValueKind::input ? "" : "; choose another name, which is that of the data's file"));
  check_along(axis_of(spec_.labels), along);
}

// The axis of the labels along which the scores have their samples; -1: not known.
int LossImport::scores_axis(ValueId scores, const SampleAxis& lie) const {
  if (lie.kind == SampleAxis::Kind::folded && options_.micro_batches > 1)
    throw Error(
        fmt::format("--loss: output '{}' is made of all samples at once, so that {} micro-batches would not give the result of the "
                    "whole batch; use one micro-batch",
                    spec_.output, options_.micro_batches));
  if (lie.kind != SampleAxis::Kind::axis || lie.stride != 1) return -1;
  const auto rank = static_cast<int64_t>(graph_.value(scores).shape.size());
  if (spec_.kind == LossSpec::Kind::cosine && lie.axis + 1 == rank)
    throw Error(fmt::format("--loss: the last axis of output '{}' counts samples; cosine needs an axis of features there", spec_.output));
  if (!spec_.has_classes()) return lie.axis;
  const int64_t classes = normalize_axis(spec_.axis, rank);
  if (classes == lie.axis) throw Error(fmt::format("--loss: axis {} of output '{}' counts samples, not classes", lie.axis, spec_.output));
  return lie.axis - (classes < lie.axis);
}

int LossImport::label_axis(const Shape& shape, int along) const {
  const auto stated = options_.sample_axes.find(spec_.labels);
  const int axis = stated != options_.sample_axes.end() ? stated->second : dims_.samples == 0 ? -1 : along >= 0 ? along : 0;
  if (axis < 0) return axis;
  check_along(axis, along);
  if (axis < static_cast<int>(shape.size()) && (dims_.samples == 0 || shape[axis] == dims_.samples)) return axis;
  throw Error(
      fmt::format("--loss: labels '{}' have shape {}, whose axis {} is not the {} samples of a micro-batch; state --sample-axis {}=AXIS",
                  spec_.labels, to_string(shape), axis, dims_.samples, spec_.labels));
}

void LossImport::check_along(int axis, int along) const {
  if (along >= 0 && axis >= 0 && axis != along)
    throw Error(
        fmt::format("--loss: the samples of '{}' are on its axis {}, but those of output '{}' ask for axis {}; state --sample-axis {}={}",
                    spec_.labels, axis, spec_.output, along, spec_.labels, along));
}

int LossImport::axis_of(const std::string& input) const {
  for (const BoundInput& bound : dims_.inputs)
    if (bound.name == input) return bound.sample_axis;
  return -1;
}

}  // namespace zeroplan
