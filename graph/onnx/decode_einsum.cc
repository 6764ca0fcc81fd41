// Einsum: operands are joined from left to right, two at a time, by a matrix product or, where nothing is summed, by broadcasting.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

// One letter per axis. The axes of an ellipsis get letters of their own: '0' for the last, '1' for the one in front of it, …
using Labels = std::string;

struct Operand {
  Term value;
  Labels labels;
};

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

Labels kept(const Labels& labels, const Labels& wanted) {
  Labels result;
  for (const char label : labels)
    if (has(wanted, label)) result += label;
  return result;
}

Labels without(const Labels& labels, const Labels& unwanted) {
  Labels result;
  for (const char label : labels)
    if (!has(unwanted, label)) result += label;
  return result;
}

Labels ellipsis(int64_t rank) {
  Labels labels;
  for (int64_t i = rank; i-- > 0;) labels += static_cast<char>('0' + i);
  return labels;
}

// `text` with its ellipsis spelled out; rank -1: as many axes as `most`.
Labels spell_out(const std::string& text, int64_t rank, int64_t most) {
  const size_t dots = text.find("...");
  Labels labels = text;
  if (dots != std::string::npos) {
    const int64_t named = static_cast<int64_t>(text.size()) - 3, more = rank < 0 ? most : rank - named;
    if (more < 0) throw Error(fmt::format("'{}' names more axes than the operand has", text));
    labels = text.substr(0, dots) + ellipsis(more) + text.substr(dots + 3);
  }
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank)
    throw Error(fmt::format("'{}' does not fit an operand of rank {}", text, rank));
  for (const char label : labels)
    if (!std::isalnum(static_cast<unsigned char>(label))) throw Error(fmt::format("'{}' is no list of axes", text));
  return labels;
}

class Einsum {
 public:
  explicit Einsum(DecodeContext& c) : c_(c) { parse(c.attr_string("equation", "")); }

  Term run() {
    Operand result = single(terms_[0], needed_behind(0));
    for (size_t i = 1; i < terms_.size(); ++i)
      result = joined(result, single(terms_[i], output_ + needed_behind(i) + result.labels), needed_behind(i));
    for (const char label : output_)
      if (!has(result.labels, label)) throw Error(fmt::format("its result names axis '{}', which no operand has", label));
    return arranged(summed(result, output_), output_);
  }

 private:
  void parse(std::string equation) {
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const size_t arrow = equation.find("->");
    std::string inputs = equation.substr(0, arrow) + ",";
    int64_t most = 0;
    for (size_t comma; (comma = inputs.find(',')) != std::string::npos; inputs.erase(0, comma + 1)) {
      const auto i = static_cast<int>(terms_.size());
      if (i >= c_.count()) throw Error(fmt::format("equation '{}' has more operands than the node", equation));
      terms_.push_back({term(c_, i), spell_out(inputs.substr(0, comma), c_.rank(i), 0)});
      for (const char label : terms_.back().labels)
        if (std::isdigit(static_cast<unsigned char>(label))) most = std::max<int64_t>(most, label - '0' + 1);
    }
    if (static_cast<int>(terms_.size()) != c_.count()) throw Error(fmt::format("equation '{}' has fewer operands than the node", equation));
    output_ = arrow != std::string::npos ? spell_out(equation.substr(arrow + 2), -1, most) : implied(most);
    for (const char label : output_)
      if (std::count(output_.begin(), output_.end(), label) > 1) throw Error(fmt::format("its result names axis '{}' twice", label));
  }

  // Without an arrow: the ellipsis, then the letters that come once, in the order of the alphabet.
  Labels implied(int64_t most) const {
    std::map<char, int> times;
    for (const Operand& term : terms_)
      for (const char label : term.labels)
        if (std::isalpha(static_cast<unsigned char>(label))) ++times[label];
    Labels labels = ellipsis(most);
    for (const auto& [label, count] : times)
      if (count == 1) labels += label;
    return labels;
  }

  // Labels that the result or an operand behind number i needs.
  Labels needed_behind(size_t i) const {
    Labels needed = output_;
    for (size_t k = i + 1; k < terms_.size(); ++k) needed += terms_[k].labels;
    return needed;
  }

  static const Shape& shape(const Operand& operand) { return operand.value.shape(); }
  int64_t size(const Operand& term, char label) const { return shape(term)[term.labels.find(label)]; }
  int64_t size(const Operand& term, const Labels& labels) const {
    int64_t product = 1;
    for (const char label : labels) product *= size(term, label);
    return product;
  }

  // Repeated labels become one axis, the diagonal; labels that nobody else needs are summed over.
  Operand single(Operand term, const Labels& needed) {
    for (size_t i = 0; i < term.labels.size(); ++i)
      for (size_t k; (k = term.labels.find(term.labels[i], i + 1)) != Labels::npos;) term = diagonal(term, i, k);
    return summed(term, needed);
  }

  Operand diagonal(const Operand& term, size_t i, size_t k) {
    const int64_t many = shape(term)[i];
    if (shape(term)[k] != many) throw Error(fmt::format("axes '{}' of {} differ in size", term.labels[i], to_string(shape(term))));
    Labels rest = term.labels;
    rest.erase(k, 1);
    rest.erase(i, 1);
    std::vector<int64_t> order;
    Shape to;
    for (size_t axis = 0; axis < term.labels.size(); ++axis) {
      if (axis == i || axis == k) continue;
      order.push_back(static_cast<int64_t>(axis));
      to.push_back(shape(term)[axis]);
    }
    order.push_back(static_cast<int64_t>(i));
    order.push_back(static_cast<int64_t>(k));
    to.push_back(many * many);
    const Term flat = term.value.transpose(order).reshape(to);
    std::vector<int64_t> places = c_.build.counting(many);
    for (int64_t& place : places) place *= many + 1;
    return {take(flat, flat.rank() - 1, places), rest + term.labels[i]};
  }

  Operand summed(const Operand& term, const Labels& needed) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < term.labels.size(); ++i)
      if (!has(needed, term.labels[i])) axes.push_back(static_cast<int64_t>(i));
    return axes.empty() ? term : Operand{sum(term.value, axes), kept(term.labels, needed)};
  }

  static Term arranged(const Operand& term, const Labels& labels) {
    std::vector<int64_t> order;
    for (const char label : labels) order.push_back(static_cast<int64_t>(term.labels.find(label)));
    return term.value.transpose(order);
  }

  // An axis of size 1 against a longer one is broadcast: it is left out.
  Operand without_ones(const Operand& term, const Operand& other) {
    Shape to;
    Labels labels;
    for (const char label : term.labels) {
      if (size(term, label) == 1 && has(other.labels, label) && size(other, label) != 1) continue;
      labels += label;
      to.push_back(size(term, label));
    }
    return {term.value.reshape(to), labels};
  }

  Operand joined(const Operand& left, const Operand& right, const Labels& needed) {
    const Operand a = summed(without_ones(left, right), needed + right.labels), b = summed(without_ones(right, left), needed + left.labels);
    const Labels common = kept(a.labels, b.labels), batch = kept(common, needed), inner = without(common, needed);
    for (const char label : common)
      if (size(a, label) != size(b, label))
        throw Error(fmt::format("axis '{}' has {} elements in one operand and {} in another", label, size(a, label), size(b, label)));
    if (inner.empty() || !is_floating(a.value.dtype())) return summed(multiplied(a, b, common), needed);
    return product(a, b, batch, inner);
  }

  // Every label its own axis.
  Operand multiplied(const Operand& a, const Operand& b, const Labels& common) {
    const Labels left = without(a.labels, common), right = without(b.labels, common);
    const auto spread = [&](const Operand& term, const Labels& own, bool first) {
      Shape to;
      for (const char label : common) to.push_back(size(term, label));
      if (!first) to.insert(to.end(), left.size(), 1);
      for (const char label : own) to.push_back(size(term, label));
      if (first) to.insert(to.end(), right.size(), 1);
      return arranged(term, common + own).reshape(to);
    };
    return {spread(a, left, true) * spread(b, right, false), common + left + right};
  }

  Operand product(const Operand& a, const Operand& b, const Labels& batch, const Labels& inner) {
    const Labels left = without(a.labels, batch + inner), right = without(b.labels, batch + inner);
    const int64_t groups = size(a, batch), rows = size(a, left), depth = size(a, inner), columns = size(b, right);
    const Term x = arranged(a, batch + left + inner).reshape(batch.empty() ? Shape{rows, depth} : Shape{groups, rows, depth});
    const Term y = arranged(b, batch + inner + right).reshape(batch.empty() ? Shape{depth, columns} : Shape{groups, depth, columns});
    Shape to;
    for (const char label : batch + left) to.push_back(size(a, label));
    for (const char label : right) to.push_back(size(b, label));
    return {matmul(x, y).reshape(to), batch + left + right};
  }

  DecodeContext& c_;
  std::vector<Operand> terms_;
  Labels output_;
};

void einsum(DecodeContext& c) { result(c, Einsum(c).run()); }

}  // namespace

void add_einsum_decoders(DecoderTable& t) { t["Einsum"] = einsum; }

}  // namespace zeroplan
