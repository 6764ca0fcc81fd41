#include "base/checked.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) throw Error(fmt::format("{} + {} does not fit in 64 bits; use smaller dimensions", a, b));
  return sum;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) throw Error(fmt::format("{} x {} does not fit in 64 bits; use smaller dimensions", a, b));
  return product;
}

int64_t ceil_div(int64_t a, int64_t b) {
  check(a >= 0 && b > 0, "ceil_div of a negative number, or by one that is not positive");
  return a / b + (a % b != 0);
}

int64_t truncated_int(double x) { return x >= -0x1p63 && x < 0x1p63 ? static_cast<int64_t>(x) : INT64_MIN; }

int64_t checked_int(double x) {
  if (!(x >= -0x1p63 && x < 0x1p63)) throw Error(fmt::format("{} is no number of 64 bits", x));
  return static_cast<int64_t>(x);
}

int64_t round_up(int64_t a, int64_t b) { return checked_mul(ceil_div(a, b), b); }

}  // namespace zeroplan
