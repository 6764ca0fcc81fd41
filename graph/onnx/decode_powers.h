#pragma once
// Sums of powers, for p-norms, and equal factors. Only decoders include this.
#include "graph/onnx/decode.h"

namespace zeroplan {

// |x|^p
ValueId absolute_power(DecodeContext& c, ValueId x, double p);
// sum^(1/p), with the gradient 0 where the sum is 0.
ValueId power_root(DecodeContext& c, ValueId sum, double p);
// [count], a constant where it is small.
ValueId filled(DecodeContext& c, int64_t count, double value, DType dtype);

}  // namespace zeroplan
