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

}  // namespace zeroplan
