// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: scores [N, C, d…], labels [N, d…], weights of the classes [C] or none.
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

// Scores as rows [N · d…, C], labels as [N · d…].
struct Rows {
  Term scores, labels;
  std::optional<Term> counts;  // labels that are not ignored; none: all
  Shape shape;                 // of the labels
};

enum class Reduction : uint8_t { none, sum, mean };

Reduction reduction_of(DecodeContext& c) {
  const std::string name = c.attr_string("reduction", "mean");
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  if (name != "mean") throw Error(fmt::format("reduction '{}' is unknown", name));
  return Reduction::mean;
}

Rows rows_of(DecodeContext& c) {
  const Shape scores = c.shape(0), labels = c.shape(1);
  if (scores.size() < 2) throw Error("its scores need a class axis 1");
  Shape expected = scores;
  expected.erase(expected.begin() + 1);
  if (labels != expected) throw Error(fmt::format("its labels of shape {} do not fit scores of {}", to_string(labels), to_string(scores)));
  const int64_t rows = elements(labels);
  Rows r{axis_last(term(c, 0), 1).reshape({rows, scores[1]}), term(c, 1).reshape({rows}), std::nullopt, labels};
  if (c.node.find("ignore_index")) r.counts = !(r.labels == static_cast<double>(c.attr_int("ignore_index", 0)));
  return r;
}

// Of each row the element at its label; of no element where the label is ignored.
Term picked(const Rows& r, Term table) {
  const int64_t rows = r.labels.shape()[0], classes = table.shape().back();
  const Term chosen = r.labels.cast(DType::i64).reshape({rows, 1}) == positions(table.build(), classes, 1, 2);
  const Term at_label = reduce(OpKind::reduce_sum, where(chosen, table, 0), {1}, false);
  return r.counts ? where(*r.counts, at_label, 0) : at_label;
}

// Losses of the rows, weighted and put together. The mean is over the weights of the labels that count.
void reduce_losses(DecodeContext& c, const Rows& r, Term losses) {
  const std::optional<Term> weights = c.has(2) ? std::optional(picked(r, term(c, 2).reshape({1, elements(c.shape(2))}))) : std::nullopt;
  if (weights) losses = losses * *weights;
  const Reduction reduction = reduction_of(c);
  if (reduction == Reduction::none) return result(c, losses.reshape(r.shape));
  const auto total = [](Term x) { return reduce(OpKind::reduce_sum, x, {0}, false); };
  if (reduction == Reduction::sum) return result(c, total(losses));
  if (weights) return result(c, total(losses) / total(*weights));
  if (r.counts) return result(c, total(losses) / total(r.counts->cast(losses.dtype())));
  result(c, reduce(OpKind::reduce_mean, losses, {0}, false));
}

void check_weights(DecodeContext& c) {
  if (c.has(2) && c.shape(2) != Shape{c.shape(0)[1]})
    throw Error(fmt::format("its weights of shape {} do not fit {} classes", to_string(c.shape(2)), c.shape(0)[1]));
}

// A label that is no class gives NaN, which ends a run, as there is nothing to pick.
void negative_log_likelihood(DecodeContext& c) {
  const Rows r = rows_of(c);
  check_weights(c);
  const Term known = r.labels >= 0 && r.labels < static_cast<double>(c.shape(0)[1]);
  const Term at_label = picked(r, r.scores), nothing = at_label.number(std::numeric_limits<double>::quiet_NaN());
  reduce_losses(c, r, -where(r.counts ? known || !*r.counts : known, at_label, nothing));
}

// log_prob = scores - lse, in the place of the scores.
Term log_probabilities(DecodeContext& c, const Rows& r, Term lse) {
  const Term rows = r.scores - lse.reshape({r.labels.shape()[0], 1});
  Shape moved = c.shape(0);
  moved.erase(moved.begin() + 1);
  moved.push_back(c.shape(0)[1]);
  return axis_back(rows.reshape(moved), 1);
}

void softmax_cross_entropy(DecodeContext& c) {
  const Rows r = rows_of(c);
  check_weights(c);
  Attributes attributes;
  if (r.counts) attributes.set(Attr::ignore_index, c.attr_int("ignore_index", 0));
  const std::vector<ValueId> y = c.build.add_multi(OpKind::cross_entropy, {r.scores.id(), r.labels.id()}, attributes);
  const Term lse(c.build, y[2]);
  if (c.wants(1)) result(c, log_probabilities(c, r, lse), 1);
  const Reduction reduction = reduction_of(c);
  if (!c.has(2) && reduction == Reduction::sum) return c.out(0, y[0]);
  if (!c.has(2) && reduction == Reduction::mean) return result(c, Term(c.build, y[0]) / Term(c.build, y[1]));
  const Term entropies = lse - picked(r, r.scores);
  reduce_losses(c, r, r.counts ? where(*r.counts, entropies, 0) : entropies);
}

}  // namespace

void add_loss_decoders(DecoderTable& t) {
  t["SoftmaxCrossEntropyLoss"] = {softmax_cross_entropy, gradient_to({0})};
  t["NegativeLogLikelihoodLoss"] = {negative_log_likelihood, gradient_to({0})};
}

}  // namespace zeroplan
