// The built-in losses. Formulas: torch.nn.functional.
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/loss.h"

namespace zeroplan {
namespace {

using Kind = LossSpec::Kind;

std::vector<int64_t> all_axes(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

class BuiltIn {
 public:
  BuiltIn(FoldingBuilder& build, const LossSpec& spec, ValueId scores, ValueId labels)
      : build_(build), spec_(spec), scores_(scores), labels_(labels), dtype_(build.dtype(scores)) {}

  ValueId run() { return spec_.has_classes() ? class_loss() : reduced(terms()); }

 private:
  ValueId number(double value) { return build_.scalar(value, dtype_); }
  ValueId add(ValueId a, ValueId b) { return build_.add(OpKind::add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return build_.add(OpKind::sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return build_.add(OpKind::mul, {a, b}); }
  ValueId where(ValueId condition, ValueId a, ValueId b) { return build_.add(OpKind::where, {condition, a, b}); }
  ValueId reduce(OpKind op, ValueId x, std::vector<int64_t> axes, bool keep = false) {
    return build_.add(op, {x}, {{Attr::axes, std::move(axes)}, {Attr::keepdims, int64_t{keep}}});
  }
  ValueId sum(ValueId x) { return reduce(OpKind::reduce_sum, x, all_axes(build_.shape(x).size())); }
  ValueId reduced(ValueId x) { return reduce(spec_.sum ? OpKind::reduce_sum : OpKind::reduce_mean, x, all_axes(build_.shape(x).size())); }
  ValueId vector(const std::vector<double>& values) {
    return build_.constant(HostTensor::of(dtype_, {static_cast<int64_t>(values.size())}, values));
  }

  ValueId terms() {
    if (spec_.kind == Kind::bce_with_logits) return binary_entropy();
    if (spec_.kind == Kind::cosine) return sub(number(1), cosine());
    const ValueId error = sub(scores_, labels_);
    if (spec_.kind == Kind::mse) return mul(error, error);
    const ValueId size = build_.add(OpKind::abs, {error});
    if (spec_.kind == Kind::l1 || spec_.beta == 0) return size;
    return spec_.kind == Kind::huber ? bent(error, size, 1, spec_.beta) : bent(error, size, 1 / spec_.beta, 1);
  }

  // A parabola up to |d| = beta, straight lines beyond: scale · d²/2 and slope · (|d| - beta/2).
  ValueId bent(ValueId error, ValueId size, double scale, double slope) {
    const ValueId parabola = mul(mul(error, error), number(0.5 * scale));
    const ValueId line = mul(sub(size, number(0.5 * spec_.beta)), number(slope));
    return where(build_.add(OpKind::less, {size, number(spec_.beta)}), parabola, line);
  }

  // (1 - t) x + (1 + (p - 1) t) log(1 + e^-x), whose logarithm is m + log(e^(-x-m) + e^-m) with m = max(-x, 0): no overflow, and at x = 0
  // the gradient of the max cancels.
  ValueId binary_entropy() {
    const ValueId minus = build_.add(OpKind::neg, {scores_}), top = build_.add(OpKind::relu, {minus});
    const ValueId rest = add(build_.add(OpKind::exp, {sub(minus, top)}), build_.add(OpKind::exp, {build_.add(OpKind::neg, {top})}));
    ValueId positive = add(top, build_.add(OpKind::log, {rest}));
    if (!spec_.pos_weight.empty()) positive = mul(positive, add(number(1), mul(labels_, positive_rest())));
    return add(mul(sub(number(1), labels_), scores_), positive);
  }

  ValueId positive_rest() {
    std::vector<double> rest;
    for (const double p : spec_.pos_weight) rest.push_back(p - 1);
    if (rest.size() == 1) return number(rest[0]);
    const Shape& shape = build_.shape(scores_);
    if (shape.empty() || shape.back() != static_cast<int64_t>(rest.size()))
      throw Error(
          fmt::format("--loss: pos_weight has {} numbers, but output '{}' of shape {} needs one, or one for each place of its "
                      "last axis",
                      rest.size(), spec_.output, to_string(shape)));
    return vector(rest);
  }

  ValueId cosine() {
    const auto last = static_cast<int64_t>(build_.shape(scores_).size()) - 1;
    if (last < 0) throw Error(fmt::format("--loss: output '{}' is a single number; cosine needs a last axis of features", spec_.output));
    const auto over_features = [&](ValueId x) { return reduce(OpKind::reduce_sum, x, {last}); };
    const auto length = [&](ValueId x) {  // at least 1e-8
      return build_.add(OpKind::sqrt, {build_.add(OpKind::maximum, {over_features(mul(x, x)), number(1e-16)})});
    };
    return build_.add(OpKind::div, {over_features(mul(scores_, labels_)), mul(length(scores_), length(labels_))});
  }

  ValueId class_loss() {
    const Shape shape = build_.shape(scores_);
    const int64_t axis = normalize_axis(spec_.axis, static_cast<int64_t>(shape.size()));
    classes_ = shape[axis];
    if (!spec_.class_weights.empty() && static_cast<int64_t>(spec_.class_weights.size()) != classes_)
      throw Error(fmt::format("--loss: class_weights has {} numbers, but axis {} of output '{}' has {} classes", spec_.class_weights.size(),
                              spec_.axis, spec_.output, classes_));
    std::vector<int64_t> classes_last = all_axes(shape.size());
    classes_last.erase(classes_last.begin() + axis);
    classes_last.push_back(axis);
    rows_ = elements(label_shape(spec_, shape));
    scores_ = build_.reshape(build_.transpose(scores_, classes_last), {rows_, classes_});
    labels_ = build_.reshape(labels_, {rows_});
    if (spec_.kind == Kind::nll) return over_weights(mul(row_weights(), build_.add(OpKind::neg, {picked(scores_)})));
    const std::vector<ValueId> y = build_.add_multi(OpKind::cross_entropy, {scores_, labels_}, {{Attr::ignore_index, spec_.ignore_index}});
    return spec_.class_weights.empty() ? plain_entropy(y) : weighted_entropy(y[2]);
  }

  ValueId ignored() { return build_.add(OpKind::equal, {labels_, build_.cast(build_.ints({spec_.ignore_index}), build_.dtype(labels_))}); }

  // [rows]: the weight of the label's class, 0 where it is ignored.
  ValueId row_weights() {
    if (spec_.class_weights.empty()) return where(ignored(), number(0), number(1));
    const ValueId none = ignored(), safe = where(none, build_.scalar(0, build_.dtype(labels_)), labels_);
    return where(none, number(0), build_.add(OpKind::gather, {vector(spec_.class_weights), safe}, {{Attr::axis, int64_t{0}}}));
  }

  // [rows]: x [rows, classes] at the label, 0 where it is ignored.
  ValueId picked(ValueId x) {
    const ValueId columns = build_.cast(build_.ints(build_.counting(classes_)), build_.dtype(labels_));
    const ValueId chosen = build_.add(OpKind::equal, {build_.reshape(labels_, {rows_, 1}), columns});
    return reduce(OpKind::reduce_sum, where(chosen, x, number(0)), {1});
  }

  ValueId over_weights(ValueId terms) { return spec_.sum ? sum(terms) : build_.add(OpKind::div, {sum(terms), sum(row_weights())}); }

  // y: outputs of cross_entropy. The smooth part of a row is its mean over classes, lse - mean(logits).
  ValueId plain_entropy(const std::vector<ValueId>& y) {
    ValueId total = y[0];
    if (spec_.label_smoothing != 0) {
      const ValueId smooth = where(ignored(), number(0), sub(y[2], reduce(OpKind::reduce_mean, scores_, {1})));
      total = add(mul(total, number(1 - spec_.label_smoothing)), mul(sum(smooth), number(spec_.label_smoothing)));
    }
    return spec_.sum ? total : build_.add(OpKind::div, {total, y[1]});
  }

  ValueId weighted_entropy(ValueId lse) {
    const ValueId minus_log = sub(build_.reshape(lse, {rows_, 1}), scores_);
    ValueId terms = mul(row_weights(), picked(minus_log));
    if (spec_.label_smoothing != 0) {
      const ValueId all = reduce(OpKind::reduce_sum, mul(minus_log, vector(spec_.class_weights)), {1});
      const ValueId smooth = mul(where(ignored(), number(0), all), number(spec_.label_smoothing / static_cast<double>(classes_)));
      terms = add(mul(terms, number(1 - spec_.label_smoothing)), smooth);
    }
    return over_weights(terms);
  }

  FoldingBuilder& build_;
  const LossSpec& spec_;
  ValueId scores_, labels_;
  const DType dtype_;
  int64_t rows_ = 0, classes_ = 0;
};

}  // namespace

Shape label_shape(const LossSpec& spec, const Shape& scores) {
  Shape shape = scores;
  if (spec.has_classes()) shape.erase(shape.begin() + normalize_axis(spec.axis, static_cast<int64_t>(shape.size())));
  return shape;
}

ValueId build_loss(FoldingBuilder& build, const LossSpec& spec, ValueId scores, ValueId labels) {
  return BuiltIn(build, spec, scores, labels).run();
}

}  // namespace zeroplan
