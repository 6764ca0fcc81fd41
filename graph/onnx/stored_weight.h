#pragma once
// Weights between the form that a file stores them in and the f32 or f64 that a run computes with.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "graph/ir/graph.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// Elements first … first + count - 1 as stored, stored_bytes(run.type) each. Throws Error where the run has fewer.
void read_stored(WeightFiles& files, const StoredRun& run, int64_t first, int64_t count, void* out);

// The same, converted to `dtype` (f32 or f64): integers of a quantised weight are (integer - zero point) · scale.
void read_weight(WeightFiles& files, const WeightSource& source, int64_t first, int64_t count, DType dtype, void* out);

// All elements of a parameter, given in its dtype, in the form of its source. What has not moved keeps its bytes; the rest is rounded to
// the nearest, ties to even, and integers saturate. Throws Error naming the parameter where the form cannot hold a value.
std::vector<std::byte> to_stored(WeightFiles& files, const Parameter& parameter, std::span<const std::byte> values);

}  // namespace zeroplan
