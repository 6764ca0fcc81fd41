#pragma once
// What operators with sliding windows check. Only they include this.
#include "graph/ir/attributes.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

// Shape of the result of windows of sizes `kernel` over x [N,C,…], with `channels` channels; throws Error where strides, pads or
// dilations do not fit.
Shape window_result(const Attributes& attributes, const Shape& x, int64_t channels, const Shape& kernel);

}  // namespace zeroplan
