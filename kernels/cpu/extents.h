#pragma once
// The parts of a unit's parameters that lie inside what a rank covers; everything between them is padding and never read.
#include <algorithm>

#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// fn(first element relative to the covered range, number of elements, extent) for each parameter that the range touches.
template <typename Fn>
inline void for_extents(const UnitArgs& unit, const Fn& fn) {
  const int64_t end = unit.first + unit.covered;
  for (int i = 0; i < unit.count; ++i) {
    const UnitExtent& e = unit.parameters[i];
    const int64_t from = std::max(e.offset, unit.first), to = std::min(e.offset + e.elements, end);
    if (from < to) fn(from - unit.first, to - from, e);
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
