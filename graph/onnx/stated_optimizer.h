#pragma once
// An optimizer that a model file states, in zeroplan's own terms.
#include <optional>
#include <string>

namespace zeroplan {

struct StatedOptimizer {
  std::string kind;     // adamw, adam or sgd; empty: what the file asks for has no equivalent
  std::string problem;  // why, and the way out; only where kind is empty
  double momentum = 0;  // of sgd
  // What the file leaves open is not set.
  std::optional<double> lr, beta1, beta2, eps, weight_decay, clip;
  bool hugging_face = false;  // RunOptions::adam_form
};

// "adamw, lr 0.01, …"
std::string describe(const StatedOptimizer& optimizer);

}  // namespace zeroplan
