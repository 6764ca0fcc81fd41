#pragma once
// Sizes of tensors within which strides, bytes and sums of them are far from the end of 64 bits.
#include "base/shape.h"

namespace zeroplan {

inline constexpr int64_t kMaxExtent = int64_t{1} << 40;

// Elements, where axes without any count as one: what strides and loops over axes are made of. Throws Error above kMaxExtent, above
// kMaxRank axes, and where one is negative.
int64_t extent(const Shape& shape);

}  // namespace zeroplan
