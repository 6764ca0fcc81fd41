#pragma once
// Sums of powers, for p-norms. Only decoders include this.
#include "graph/onnx/terms.h"

namespace zeroplan {

// |x|^p
Term absolute_power(Term x, double p);
// sum^(1/p), with the gradient 0 where the sum is 0.
Term power_root(Term sum, double p);

}  // namespace zeroplan
