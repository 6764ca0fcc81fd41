#include "graph/onnx/decode_powers.h"

namespace zeroplan {

Term absolute_power(Term x, double p) {
  if (p == 2) return x * x;
  return p == 1 ? abs(x) : pow(abs(x), p);
}

Term power_root(Term sum, double p) {
  if (p == 1) return sum;
  const Term positive = sum > 0, safe = where(positive, sum, 1);
  return where(positive, p == 2 ? sqrt(safe) : pow(safe, 1 / p), 0);
}

}  // namespace zeroplan
