#include "runtime/plan/parse_check.h"

#include <fmt/format.h>

#include <cmath>

namespace zeroplan {

std::string Field::path() const {
  std::string text = index_ < 0 ? std::string(name_) : fmt::format("{}[{}]", name_, index_);
  if (!parent_) return text;
  return parent_->parent_ ? parent_->path() + "." + text : parent_->path() + ": field " + text;
}

void Field::fail(const std::string& what) const { throw Error(fmt::format("{}: {}", path(), what)); }

int64_t Field::range(int64_t value, int64_t low, int64_t high) const {
  if (value < low || value > high)
    fail(fmt::format("{} is outside [{}, {}]; the file is damaged, compile the model again", value, low, high));
  return value;
}

int32_t Field::index(int32_t value, size_t count) const {
  return static_cast<int32_t>(range(value, kNone, static_cast<int64_t>(count) - 1));
}

int32_t Field::index_not_none(int32_t value, size_t count) const {
  return static_cast<int32_t>(range(value, 0, static_cast<int64_t>(count) - 1));
}

double Field::time(double value) const {
  if (!std::isfinite(value) || value < 0) fail("not a time");
  return value;
}

void Field::check_shape(const Shape& shape) const {
  if (shape.size() > kMaxRank) fail(fmt::format("{} axes, at most {}", shape.size(), kMaxRank));
  int64_t count = 1;
  for (int64_t dim : shape) {
    range(dim, 0, kMaxBytes);
    if (__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count) || count > kMaxBytes) fail("too many elements");
  }
}

}  // namespace zeroplan
