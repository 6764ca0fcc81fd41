#pragma once
// The little program of an `elementwise` node: a chain of unary, binary and ternary ops carried out in one pass over memory.
//
// Registers: the node's operands 0 … n-1, then the constants, then one per instruction; the last instruction is the output. Everything is
// computed in the output's floating-point type; boolean operands are read as 0 or 1, comparisons give 0 or 1, `where` tests ≠ 0.
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

struct ElementwiseInstruction {
  OpKind op{};
  int a = -1, b = -1, c = -1;  // registers; -1 unused
  int approximate = 0;         // gelu, gelu_grad
};

struct ElementwiseCode {
  std::vector<double> constants;
  std::vector<ElementwiseInstruction> instructions;
};

// Attribute `code`, a text: one statement per register after the operands, constants first, then instructions with the registers that they
// read: "const 0.5; add 0 1; gelu:tanh 3; mul 4 2". Decoding throws Error on anything else.
Attributes encode_elementwise(const ElementwiseCode& code);
ElementwiseCode decode_elementwise(const Attributes& attributes);
// Ops that may stand in a chain.
bool is_elementwise(OpKind op);

}  // namespace zeroplan
