#include "passes/simplify/polynomial.h"

#include <cmath>

#include "passes/edit/producers.h"

namespace zeroplan {
namespace {

constexpr int kMaxDepth = 10;
constexpr double kTolerance = 2e-6;

std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (const auto& [powers, c] : a)
    for (const auto& [more, d] : b) {
      const std::pair<int, int> sum = {powers.first + more.first, powers.second + more.second};
      if (sum.first + sum.second > kMaxDegree) return std::nullopt;
      result[sum] += c * d;
    }
  return result;
}

class Expansion {
 public:
  Expansion(const Graph& graph, ValueId x, ValueId t) : graph_(graph), x_(x), t_(t) {}

  std::optional<Polynomial> of(ValueId id, int depth) const {
    if (id == x_) return Polynomial{{{1, 0}, 1.0}};
    if (id == t_) return Polynomial{{{0, 1}, 1.0}};
    if (const std::optional<double> c = scalar_constant(graph_, id)) return Polynomial{{{0, 0}, *c}};
    const Node* node = producer_of(graph_, id);
    if (!node || depth == 0) return std::nullopt;
    switch (node->op) {
      case OpKind::neg: return scale(of(node->inputs[0], depth - 1), -1);
      case OpKind::add: return sum(*node, 1, depth);
      case OpKind::sub: return sum(*node, -1, depth);
      case OpKind::mul: return product(of(node->inputs[0], depth - 1), node->inputs[1], depth);
      case OpKind::div: return quotient(*node, depth);
      case OpKind::pow: return power(*node, depth);
      default: return std::nullopt;
    }
  }

 private:
  static std::optional<Polynomial> scale(std::optional<Polynomial> p, double by) {
    if (p)
      for (auto& [powers, c] : *p) c *= by;
    return p;
  }

  std::optional<Polynomial> sum(const Node& node, double sign, int depth) const {
    std::optional<Polynomial> a = of(node.inputs[0], depth - 1);
    const std::optional<Polynomial> b = a ? of(node.inputs[1], depth - 1) : std::nullopt;
    if (!b) return std::nullopt;
    for (const auto& [powers, c] : *b) (*a)[powers] += sign * c;
    return a;
  }

  std::optional<Polynomial> product(const std::optional<Polynomial>& a, ValueId other, int depth) const {
    const std::optional<Polynomial> b = a ? of(other, depth - 1) : std::nullopt;
    return b ? multiply(*a, *b) : std::nullopt;
  }

  std::optional<Polynomial> quotient(const Node& node, int depth) const {
    const std::optional<double> c = scalar_constant(graph_, node.inputs[1]);
    return c && *c != 0 ? scale(of(node.inputs[0], depth - 1), 1 / *c) : std::nullopt;
  }

  std::optional<Polynomial> power(const Node& node, int depth) const {
    const std::optional<double> c = scalar_constant(graph_, node.inputs[1]);
    if (!c || *c != std::floor(*c) || *c < 1 || *c > kMaxDegree) return std::nullopt;
    const std::optional<Polynomial> base = of(node.inputs[0], depth - 1);
    std::optional<Polynomial> result = base;
    for (int i = 1; result && i < static_cast<int>(*c); ++i) result = multiply(*result, *base);
    return result;
  }

  const Graph& graph_;
  ValueId x_, t_;
};

}  // namespace

std::optional<Polynomial> polynomial_of(const Graph& graph, ValueId id, ValueId x, ValueId t) {
  return Expansion(graph, x, t).of(id, kMaxDepth);
}

bool nearly_equal(const Polynomial& a, const Polynomial& b) {
  Polynomial difference = a;
  for (const auto& [powers, c] : b) difference[powers] -= c;
  for (const auto& [powers, d] : difference) {
    const auto expected = b.find(powers);
    const double size = expected == b.end() ? 1.0 : std::abs(expected->second);
    if (std::abs(d) > kTolerance * size) return false;
  }
  return true;
}

}  // namespace zeroplan
