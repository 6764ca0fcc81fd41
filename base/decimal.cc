#include "base/decimal.h"

#include <charconv>
#include <cmath>

namespace zeroplan {

double meant_decimal(double value) {
  const float single = static_cast<float>(value);
  if (!std::isfinite(value) || static_cast<double>(single) != value) return value;
  char text[64];
  const auto written = std::to_chars(text, text + sizeof text, single);
  double decimal = value;
  std::from_chars(text, written.ptr, decimal);
  return decimal;
}

double meant_root(double value) {
  constexpr double kExponents[] = {0.5, -0.5, 0.25, -0.25}, kLargest = 65536;
  if (!(value > 0) || static_cast<double>(static_cast<float>(value)) != value) return value;
  for (const double exponent : kExponents) {
    const double n = std::round(std::pow(value, 1 / exponent));
    if (n < 2 || n > kLargest) continue;
    const double root = std::pow(n, exponent);
    if (static_cast<double>(static_cast<float>(root)) == value) return root;
  }
  return value;
}

}  // namespace zeroplan
