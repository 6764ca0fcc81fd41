#pragma once
// The parts of a unit's parameters that lie inside what a rank covers; everything between them is padding and never read.
#include "kernels/kernel.h"
#include "kernels/scalar/primitives.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// fn(first element relative to the covered range, number of elements, extent) for each parameter that the range touches.
template <typename Fn>
ZP_DEVICE void for_extents(const UnitArgs& unit, const Fn& fn) {
  const int64_t end = unit.first + unit.covered;
  for (int i = 0; i < unit.count; ++i) {
    const UnitExtent& e = unit.parameters[i];
    const int64_t from = e.offset > unit.first ? e.offset : unit.first, last = e.offset + e.elements, to = last < end ? last : end;
    if (from < to) fn(from - unit.first, to - from, e);
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
