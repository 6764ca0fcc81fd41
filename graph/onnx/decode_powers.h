#pragma once
// Sums of powers, for p-norms, and equal factors. Only decoders include this.
#include "graph/onnx/terms.h"

namespace zeroplan {

// |x|^p
Term absolute_power(Term x, double p);
// sum^(1/p), with the gradient 0 where the sum is 0.
Term power_root(Term sum, double p);
// [count], a constant where it is small.
Term filled(FoldingBuilder& build, int64_t count, double value, DType dtype);

}  // namespace zeroplan
