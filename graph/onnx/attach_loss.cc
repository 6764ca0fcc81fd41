#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/onnx/loss.h"
#include "graph/onnx/sample_axes.h"

namespace zeroplan {
namespace {

std::vector<int64_t> all_axes(const Shape& shape) {
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

ValueId total(FoldingBuilder& build, ValueId x) {
  const Shape shape = build.shape(x);
  return shape.empty() ? x : build.add(OpKind::reduce_sum, {x}, {{Attr::axes, all_axes(shape)}, {Attr::keepdims, int64_t{0}}});
}

struct Form : Loss {
  explicit Form(Loss loss) : Loss(std::move(loss)) {}
  std::vector<double> factors = {1};  // constants that the model multiplies each term by
};

// Looks through the nodes that end a loss; linear factors move onto the sum.
class LossForm {
 public:
  LossForm(FoldingBuilder& build, const std::map<ValueId, int>& sample_axes)
      : build_(build), samples_(find_sample_axes(build.graph(), sample_axes)) {}

  // Empty where the value is neither a mean nor a sum. Recursion is bounded: each step goes to an operand, at most kDepth times.
  std::optional<Form> analyze(ValueId id, int depth = 0) {
    constexpr int kDepth = 64;
    const NodeId producer = build_.graph().values[id].producer;
    if (producer == kNone || depth > kDepth || elements(build_.shape(id)) != 1) return std::nullopt;
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
      case OpKind::cross_entropy:
        if (node.outputs[0] != id || !has_rows_of_samples(node)) return std::nullopt;
        return Form({id, kNone, "sum of cross entropies"});
      default: return std::nullopt;
    }
  }

 private:
  std::optional<double> constant_scalar(ValueId id) const {
    if (!build_.is_constant(id) || elements(build_.shape(id)) != 1) return std::nullopt;
    return build_.graph().values[id].constant.get(0);
  }

  std::optional<Form> scaled(std::optional<Form> form, double factor) {
    if (!form || factor == 1) return form;
    for (double& f : form->factors) f *= factor;
    form->sum = times(form->sum, factor);
    return form;
  }

  ValueId times(ValueId x, double factor) { return factor == 1 ? x : build_.add(OpKind::mul, {x, build_.scalar(factor, build_.dtype(x))}); }

  // Sums over samples that were folded before the scores would not be sums.
  bool has_rows_of_samples(const Node& entropy) const { return samples_[entropy.inputs[0]].kind != SampleAxis::Kind::folded; }

  std::optional<Form> product(const Node& node, int depth) {
    for (int i = 0; i < 2; ++i)
      if (const auto factor = constant_scalar(node.inputs[i])) return scaled(analyze(node.inputs[1 - i], depth + 1), *factor);
    return std::nullopt;
  }

  std::optional<Form> quotient(const Node& node, int depth) {
    if (const auto divisor = constant_scalar(node.inputs[1])) return scaled(analyze(node.inputs[0], depth + 1), 1 / *divisor);
    const NodeId producer = build_.graph().values[node.inputs[0]].producer;
    if (producer == kNone) return std::nullopt;
    const Node& entropy = build_.graph().nodes[producer];
    if (entropy.op == OpKind::cross_entropy && node.inputs[0] == entropy.outputs[0] && node.inputs[1] == entropy.outputs[1] &&
        has_rows_of_samples(entropy))
      return Form({node.inputs[0], node.inputs[1], "mean of cross entropies over the labels that count"});
    if (!is_sum_of_data(node.inputs[1])) return std::nullopt;
    std::optional<Form> form = analyze(node.inputs[0], depth + 1);
    if (!form || form->weight != kNone) return std::nullopt;
    form->weight = build_.reshape(node.inputs[1], {});
    form->description += " over a sum of the data";
    return form;
  }

  // A total that depends on inputs and constants alone, such as the number of tokens that count: it adds up over micro-batches.
  bool is_sum_of_data(ValueId id) const {
    const Graph& graph = build_.graph();
    NodeId producer = graph.values[id].producer;
    while (producer != kNone && (graph.nodes[producer].op == OpKind::reshape || graph.nodes[producer].op == OpKind::cast))
      producer = graph.values[graph.nodes[producer].inputs[0]].producer;
    if (producer == kNone || graph.nodes[producer].op != OpKind::reduce_sum || !is_floating(graph.values[id].dtype)) return false;
    if (elements(graph.values[id].shape) != 1) return false;
    std::vector<bool> trained(graph.values.size(), false);
    for (size_t i = 0; i < trained.size(); ++i) trained[i] = graph.values[i].kind == ValueKind::parameter;
    for (const Node& node : graph.nodes) {
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return in != kNone && trained[in]; });
      for (ValueId out : node.outputs) trained[out] = any;
    }
    return !trained[id];
  }

  std::optional<Form> reduction(const Node& node, int depth) {
    const ValueId x = node.inputs[0];
    const int64_t count = elements(build_.shape(x));
    const SampleAxis::Kind from = samples_[x].kind;
    if (count == 1 && from != SampleAxis::Kind::axis)
      if (auto inner = analyze(x, depth + 1)) return inner;
    const bool mean = node.op == OpKind::reduce_mean;
    if (from == SampleAxis::Kind::folded && !folded_by(x, node.op)) return std::nullopt;
    Form loss({total(build_, x), kNone, fmt::format("{} over {} elements", mean ? "mean" : "sum", count)});
    if (mean)
      loss.weight = build_.scalar(static_cast<double>(count), build_.dtype(x));
    else if (from == SampleAxis::Kind::none)  // a sum over weights: the same in each micro-batch
      loss.weight = build_.scalar(1, build_.dtype(x));
    return loss;
  }

  // Samples are gone from x by the same reduction: the two in a row are one.
  bool folded_by(ValueId x, OpKind op) const {
    const NodeId producer = build_.graph().values[x].producer;
    if (producer == kNone || build_.graph().nodes[producer].op != op) return false;
    return samples_[build_.graph().nodes[producer].inputs[0]].kind == SampleAxis::Kind::axis;
  }

  // Two terms whose weights are the same value, or constants: the second is brought to the first's denominator.
  std::optional<Form> combined(const Node& node, double sign, int depth) {
    std::optional<Form> a = analyze(node.inputs[0], depth + 1), b = analyze(node.inputs[1], depth + 1);
    if (!a || !b || (a->weight == kNone) != (b->weight == kNone)) return std::nullopt;
    double factor = sign;
    if (a->weight != b->weight) {
      const auto left = constant_scalar(a->weight), right = constant_scalar(b->weight);
      if (!left || !right) return std::nullopt;
      factor *= *left / *right;
    }
    a->factors.insert(a->factors.end(), b->factors.begin(), b->factors.end());
    a->sum = build_.add(OpKind::add, {build_.reshape(a->sum, {}), build_.reshape(times(b->sum, factor), {})});
    a->description += " + " + b->description;
    return a;
  }

  FoldingBuilder& build_;
  std::vector<SampleAxis> samples_;  // of the values that were there before
};

// A sum that the model divides by its number of samples is a mean over them.
void apply_sample_count(FoldingBuilder& build, Form& form, const TwiceTheSamples& twice, const std::string& origin) {
  const auto all_grow_by = [&](double ratio) {
    return std::equal(form.factors.begin(), form.factors.end(), twice.factors.begin(),
                      [&](double once, double two) { return std::abs(two - ratio * once) <= 1e-6 * std::abs(two); });
  };
  if (all_grow_by(1)) return;
  if (form.weight != kNone || !all_grow_by(0.5))
    throw Error(
        fmt::format("the loss that ends in node '{}' has a factor that depends on the number of samples, so that micro-batches cannot be "
                    "combined; use a mean, or one micro-batch",
                    origin));
  const DType dtype = build.dtype(form.sum);
  form.sum = build.add(OpKind::mul, {form.sum, build.scalar(static_cast<double>(twice.samples), dtype)});
  form.weight = build.scalar(static_cast<double>(twice.samples), dtype);
  form.description += fmt::format(" over {} samples", twice.samples);
}

}  // namespace

std::vector<double> loss_factors(FoldingBuilder& build, ValueId loss, const std::map<ValueId, int>& sample_axes) {
  const std::optional<Form> form = LossForm(build, sample_axes).analyze(loss);
  return form ? form->factors : std::vector<double>{};
}

Loss attach_loss(FoldingBuilder& build, ValueId loss, int64_t micro_batches, const std::map<ValueId, int>& sample_axes,
                 const TwiceTheSamples& twice) {
  const Value& value = build.graph().values[loss];
  if (!is_floating(value.dtype) || elements(value.shape) != 1)
    throw Error(fmt::format("the loss '{}' is {} of shape {}; it must be one floating-point number", value.name, type_name(value.dtype),
                            to_string(value.shape)));
  const std::string origin = value.producer == kNone ? value.name : build.graph().nodes[value.producer].origin;
  const bool read_twice = micro_batches > 1 && twice.samples > 0;
  std::optional<Form> form = LossForm(build, sample_axes).analyze(loss);
  const bool agreed = form && (!read_twice || twice.factors.size() == form->factors.size());  // one sample shows less than two
  if (!agreed && micro_batches > 1)
    throw Error(
        fmt::format("the loss ends in node '{}', which is neither a mean nor a sum over samples, so that {} micro-batches cannot be "
                    "combined; use one micro-batch",
                    origin, micro_batches));
  if (!agreed)
    return {build.reshape(loss, {}), build.scalar(1, build.dtype(loss)), fmt::format("value of node '{}', one micro-batch", origin)};
  if (read_twice) apply_sample_count(build, *form, twice, origin);
  form->sum = build.reshape(form->sum, {});
  return *form;
}

Shape label_shape(const LossSpec& spec, const Shape& scores) {
  Shape shape = scores;
  if (spec.kind == LossSpec::Kind::softmax_cross_entropy)
    shape.erase(shape.begin() + normalize_axis(spec.axis, static_cast<int64_t>(shape.size())));
  return shape;
}

Loss build_loss(FoldingBuilder& build, const LossSpec& spec, ValueId scores, ValueId labels) {
  const Shape shape = build.shape(scores);
  if (spec.kind == LossSpec::Kind::mse) {
    const ValueId error = build.add(OpKind::sub, {scores, labels});
    const ValueId sum = total(build, build.add(OpKind::mul, {error, error}));
    return {sum, build.scalar(static_cast<double>(elements(shape)), build.dtype(scores)), "mean of squared errors"};
  }
  const int64_t axis = normalize_axis(spec.axis, static_cast<int64_t>(shape.size()));
  std::vector<int64_t> classes_last = all_axes(shape);
  classes_last.erase(classes_last.begin() + axis);
  classes_last.push_back(axis);
  const int64_t rows = elements(label_shape(spec, shape));
  const ValueId logits = build.reshape(build.transpose(scores, classes_last), {rows, shape[axis]});
  const std::vector<ValueId> y =
      build.add_multi(OpKind::cross_entropy, {logits, build.reshape(labels, {rows})}, {{Attr::ignore_index, spec.ignore_index}});
  return {y[0], y[1], "mean of cross entropies over the labels that count"};
}

}  // namespace zeroplan
