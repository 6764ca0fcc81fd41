#pragma once
// Elements of a file into elements of a plan.
#include "base/npy.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// Can elements of `from` be read as `to`? Float widths convert to each other, integers to i64 and i32, 0 and 1 to bool.
bool convertible(NpyType from, DType to);
// Converts a run of elements and checks each against the input's range; `sample` is for the message.
void convert_run(NpyType from, const void* source, const PlanInput& input, int64_t sample, int64_t count, void* to);

}  // namespace zeroplan
