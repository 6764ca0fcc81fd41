#pragma once
// Elementwise operators on one block: contiguous operands, contiguous result, which may be one of the operands.
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// y[0…n) from a, b, c; operands that the op does not take are not read.
template <typename T>
using BlockFn = void (*)(const T* a, const T* b, const T* c, T* y, int64_t n);

// T: float, double, uint64_t for that type, int64_t for all other integers. Throws Error where the op does not exist for integers.
template <typename T>
BlockFn<T> block_function(OpKind op, int64_t approximate);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
