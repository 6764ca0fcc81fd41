#include "base/extent.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

int64_t extent(const Shape& shape) {
  if (shape.size() > kMaxRank)
    throw Error(fmt::format("shape {} has rank {}; at most {} is supported", to_string(shape), shape.size(), kMaxRank));
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) throw Error(fmt::format("shape {} has a negative dimension", to_string(shape)));
    if (__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count) || count > kMaxExtent)
      throw Error(fmt::format("shape {} has more than {} elements, the most that is supported; use smaller dimensions", to_string(shape),
                              kMaxExtent));
  }
  return count;
}

}  // namespace zeroplan
