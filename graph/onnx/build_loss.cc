// The built-in losses. Formulas: torch.nn.functional.
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/loss.h"
#include "graph/onnx/terms.h"

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
  BuiltIn(const LossSpec& spec, Term scores, Term labels) : spec_(spec), scores_(scores), labels_(labels) {}

  Term run() { return spec_.has_classes() ? class_loss() : over_all(spec_.sum ? OpKind::reduce_sum : OpKind::reduce_mean, terms()); }

 private:
  static Term over_all(OpKind op, Term x) { return reduce(op, x, all_axes(x.shape().size()), false); }
  static Term total(Term x) { return over_all(OpKind::reduce_sum, x); }
  Term vector(const std::vector<double>& values) const {
    return {scores_.build(), scores_.build().constant(HostTensor::of(scores_.dtype(), {static_cast<int64_t>(values.size())}, values))};
  }

  Term terms() const {
    if (spec_.kind == Kind::bce_with_logits) return binary_entropy();
    if (spec_.kind == Kind::cosine) return 1 - cosine();
    const Term error = scores_ - labels_;
    if (spec_.kind == Kind::mse) return error * error;
    if (spec_.kind == Kind::l1 || spec_.beta == 0) return abs(error);
    return spec_.kind == Kind::huber ? bent(error, 1, spec_.beta) : bent(error, 1 / spec_.beta, 1);
  }

  // A parabola up to |d| = beta, straight lines beyond: scale · d²/2 and slope · (|d| - beta/2).
  Term bent(Term error, double scale, double slope) const {
    const Term size = abs(error), parabola = error * error * (0.5 * scale);
    return where(size < spec_.beta, parabola, (size - 0.5 * spec_.beta) * slope);
  }

  // (1 - t) x + (1 + (p - 1) t) log(1 + e^-x), whose logarithm is m + log(e^(-x-m) + e^-m) with m = max(-x, 0): no overflow, and at x = 0
  // the gradient of the max cancels.
  Term binary_entropy() const {
    const Term minus = -scores_, top = apply(OpKind::relu, minus);
    Term positive = top + log(exp(minus - top) + exp(-top));
    if (!spec_.pos_weight.empty()) positive = positive * (labels_ * positive_rest() + 1);
    return (1 - labels_) * scores_ + positive;
  }

  Term positive_rest() const {
    std::vector<double> rest;
    for (const double p : spec_.pos_weight) rest.push_back(p - 1);
    if (rest.size() == 1) return scores_.number(rest[0]);
    const Shape& shape = scores_.shape();
    if (shape.empty() || shape.back() != static_cast<int64_t>(rest.size()))
      throw Error(
          fmt::format("--loss: pos_weight has {} numbers, but output '{}' of shape {} needs one, or one for each place of its "
                      "last axis",
                      rest.size(), spec_.output, to_string(shape)));
    return vector(rest);
  }

  Term cosine() const {
    const int64_t last = scores_.rank() - 1;
    if (last < 0) throw Error(fmt::format("--loss: output '{}' is a single number; cosine needs a last axis of features", spec_.output));
    const auto length = [&](Term x) { return sqrt(maximum(sum(x * x, {last}), 1e-16)); };  // at least 1e-8
    return sum(scores_ * labels_, {last}) / (length(scores_) * length(labels_));
  }

  Term class_loss() {
    const Shape shape = scores_.shape();
    const int64_t axis = normalize_axis(spec_.axis, scores_.rank());
    classes_ = shape[axis];
    if (!spec_.class_weights.empty() && static_cast<int64_t>(spec_.class_weights.size()) != classes_)
      throw Error(fmt::format("--loss: class_weights has {} numbers, but axis {} of output '{}' has {} classes", spec_.class_weights.size(),
                              spec_.axis, spec_.output, classes_));
    rows_ = elements(label_shape(spec_, shape));
    scores_ = axis_last(scores_, axis).reshape({rows_, classes_});
    labels_ = labels_.reshape({rows_});
    if (spec_.kind == Kind::nll) return over_weights(row_weights() * -picked(scores_));
    FoldingBuilder& build = scores_.build();
    const std::vector<ValueId> y =
        build.add_multi(OpKind::cross_entropy, {scores_.id(), labels_.id()}, {{Attr::ignore_index, spec_.ignore_index}});
    return spec_.class_weights.empty() ? plain_entropy({build, y[0]}, {build, y[1]}, {build, y[2]}) : weighted_entropy({build, y[2]});
  }

  Term ignored() const { return labels_ == static_cast<double>(spec_.ignore_index); }

  // [rows]: the weight of the label's class, 0 where it is ignored.
  Term row_weights() const {
    const Term none = ignored();
    if (spec_.class_weights.empty()) return where(none, scores_.number(0), scores_.number(1));
    return where(none, 0, gather(vector(spec_.class_weights), where(none, 0, labels_), 0));
  }

  // [rows]: x [rows, classes] at the label, 0 where it is ignored.
  Term picked(Term x) const {
    const Term columns = positions(x.build(), classes_, 1, 2).cast(labels_.dtype());
    return sum(where(labels_.reshape({rows_, 1}) == columns, x, 0), {1});
  }

  Term over_weights(Term terms) const { return spec_.sum ? total(terms) : total(terms) / total(row_weights()); }

  // Loss, weight and lse of cross_entropy. The smooth part of a row is its mean over classes, lse - mean(logits).
  Term plain_entropy(Term loss, Term weight, Term lse) const {
    if (spec_.label_smoothing != 0) {
      const Term smooth = where(ignored(), 0, lse - reduce(OpKind::reduce_mean, scores_, {1}, false));
      loss = loss * (1 - spec_.label_smoothing) + total(smooth) * spec_.label_smoothing;
    }
    return spec_.sum ? loss : loss / weight;
  }

  Term weighted_entropy(Term lse) const {
    const Term minus_log = lse.reshape({rows_, 1}) - scores_;
    Term terms = row_weights() * picked(minus_log);
    if (spec_.label_smoothing != 0) {
      const Term all = sum(minus_log * vector(spec_.class_weights), {1});
      const Term smooth = where(ignored(), 0, all) * (spec_.label_smoothing / static_cast<double>(classes_));
      terms = terms * (1 - spec_.label_smoothing) + smooth;
    }
    return over_weights(terms);
  }

  const LossSpec& spec_;
  Term scores_, labels_;
  int64_t rows_ = 0, classes_ = 0;
};

}  // namespace

Shape label_shape(const LossSpec& spec, const Shape& scores) {
  Shape shape = scores;
  if (spec.has_classes()) shape.erase(shape.begin() + normalize_axis(spec.axis, static_cast<int64_t>(shape.size())));
  return shape;
}

ValueId build_loss(FoldingBuilder& build, const LossSpec& spec, ValueId scores, ValueId labels) {
  return BuiltIn(spec, {build, scores}, {build, labels}).run().id();
}

}  // namespace zeroplan
