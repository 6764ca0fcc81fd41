#pragma once
// Activations that are formulas over other operators, as nodes of their own and inside recurrent ones.
#include "graph/onnx/terms.h"

namespace zeroplan {

// scale · (e^(x/width) - 1) below zero, x from there on; the exponent is held back where it would overflow unused.
inline Term exponential_unit(Term x, double scale, double width = 1) {
  const Term low = minimum(x, 0) / width;
  return where(x < 0, (exp(low) - 1) * scale, x);
}

inline Term hard_sigmoid(Term x, double alpha, double beta) { return maximum(minimum(x * alpha + beta, 1), 0); }

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|); at 0 the maximum has half a slope, and |x| none.
inline Term softplus(Term x) { return maximum(x, 0) + log(exp(-abs(x)) + 1); }

inline Term softsign(Term x) { return x / (abs(x) + 1); }
inline Term leaky_relu(Term x, double alpha) { return where(x < 0, x * alpha, x); }
inline Term thresholded_relu(Term x, double alpha) { return where(x > alpha, x, 0); }

}  // namespace zeroplan
