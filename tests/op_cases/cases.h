#pragma once
// One list of cases for every operator with a kernel; the reference tests and the kernel tests both run through it.
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

struct TensorSpec {
  Shape shape;
  DType dtype = DType::f32;         // f32 stands for the precision under test, any other type for itself
  double low = -1, high = 1;        // random values; integers: [low, high)
  std::vector<double> values = {};  // explicit values instead
  bool gradient = true;             // floating inputs of a differentiable case: is the gradient checked?
  bool constant = false;            // is a constant of the graph rather than an input
  bool absent = false;              // optional operand left out
  bool wide = false;                // stays float32 where the precision has 16 bits: statistics, and what is computed with sums
};

struct OpCase {
  const char* name;
  OpKind op{};
  std::vector<TensorSpec> inputs;
  Attributes attributes = {};
  bool differentiable = false;
  bool zero_gradient = false;  // differentiable, and the gradient is zero everywhere (floor-like ops)
};

// Every kernel op outside the training step has at least one.
const std::vector<OpCase>& op_cases();

// The case as a graph of one node, with seeded random operands. values[node.inputs[i]] is the operand; missing ones are kNone.
struct CaseGraph {
  Graph graph;
  Node node;  // copy of the node under test
  std::map<ValueId, HostTensor> values;
};
CaseGraph build_case(const OpCase& op_case, DType precision, uint64_t seed);
// Output types by infer, contents by the op's reference evaluator.
std::vector<HostTensor> reference_outputs(const CaseGraph& built);

}  // namespace zeroplan
