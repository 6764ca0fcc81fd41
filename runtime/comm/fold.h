#pragma once
// Sums in a fixed order. Compiled without contraction to fused multiply-add; the same bits on every machine.
#include <cstdint>

#include "base/dtype.h"

namespace zeroplan {

// Throws Error on a type that is not summed: f32, f64 and i64 are.
void require_summable(DType dtype);
// The same for what a reduce_scatter takes in: f16 and bf16 too.
void require_foldable(DType dtype);
// accumulator[i] += addend[i], the addend of `dtype`, the accumulator of wide_dtype(dtype).
void add_in_place(void* accumulator, const void* addend, int64_t elements, DType dtype);

}  // namespace zeroplan
