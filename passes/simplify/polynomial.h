#pragma once
// Values as polynomials in one or two other values: equal polynomials compute the same, however an exporter factored them.
#include <map>
#include <optional>
#include <utility>

#include "graph/ir/graph.h"

namespace zeroplan {

// Coefficients by the powers of (x, t).
using Polynomial = std::map<std::pair<int, int>, double>;

// `id` written in x and t (kNone: x alone) through add, sub, mul, neg, division by constants and whole powers; nullopt where it needs
// anything else, or a degree above `kMaxDegree`.
inline constexpr int kMaxDegree = 4;
std::optional<Polynomial> polynomial_of(const Graph& graph, ValueId id, ValueId x, ValueId t = kNone);
// Equal up to the rounding of constants to single precision.
bool nearly_equal(const Polynomial& a, const Polynomial& b);

}  // namespace zeroplan
