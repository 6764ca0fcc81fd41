#pragma once
// Gradients of a suite's model: of a weighted sum of its floating-point outputs by its floating-point inputs and initializers, in double.
#include <string>

#include "tests/conformance/forward.h"

namespace zeroplan {

// The forward with its floating-point inputs turned into parameters and a loss attached.
struct GradientProblem {
  Graph graph;                           // forward and loss
  std::map<ValueId, HostTensor> values;  // of inputs and parameters, by id in `graph`
  std::vector<ValueId> leaves;           // by parameter
  ValueId scale = kNone;                 // sum of the sizes of what the loss sums
};

// `forward` in f64. No leaves: no gradient path leads from a floating-point input to a floating-point output.
GradientProblem make_problem(const Forward& forward);

// By parameter: through the whole pipeline and the executor, on one rank.
std::vector<HostTensor> built_gradients(const GradientProblem& problem);

// Where they differ from one-sided and central differences of the loss; empty where they agree. Every element of a small
// leaf, a seeded choice of a large one. `zero` is set to whether all checked gradients are zero.
std::string compare_gradients(const GradientProblem& problem, const std::vector<HostTensor>& gradients, bool& zero);

}  // namespace zeroplan
