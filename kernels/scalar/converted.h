#pragma once
// Conversions between element types.
#include <cstdint>
#include <type_traits>

#include "kernels/scalar/primitives.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// Towards zero; INT64_MIN for what 64 bits do not hold, and nan.
template <typename From>
ZP_DEVICE int64_t truncated(From x) {
  return x >= From(-0x1p63) && x < From(0x1p63) ? static_cast<int64_t>(x) : INT64_MIN;
}

// Floating to integer truncates and wraps, but to uint64 also what int64 does not hold; anything to boolean is a test for ≠ 0.
template <typename To, typename From>
ZP_DEVICE To converted(From x) {
  if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>)
    return x < From(0x1p63) || x != x ? static_cast<To>(truncated(x)) : x < From(0x1p64) ? static_cast<To>(x) : ~To(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return static_cast<To>(truncated(x));
  else
    return static_cast<To>(x);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
