#pragma once
// Division by a number that the host knows, without a division instruction.
#include <cstdint>

#include "kernels/scalar/primitives.h"

namespace zeroplan::kernels_cuda {

// n / divisor for n < 2^31, 1 <= divisor < 2^31. T. Granlund, P. L. Montgomery, "Division by invariant integers using multiplication",
// 1994.
struct Divider {
  uint32_t divisor = 1, multiplier = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d) {
    while ((uint64_t{1} << shift) < d) ++shift;
    multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - d) << 32) / d + 1);
  }
  ZP_DEVICE uint32_t quotient(uint32_t n) const {
    const auto high = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32);
    return (high + n) >> shift;
  }
};

}  // namespace zeroplan::kernels_cuda
