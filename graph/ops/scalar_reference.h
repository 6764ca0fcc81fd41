#pragma once
// One element of every elementwise operator, in double.
#include "graph/ir/graph.h"

namespace zeroplan {

// Operands that the op does not take are ignored; booleans are 0 or 1. `approximate` is of gelu and gelu_grad.
double scalar_reference(OpKind op, double a, double b, double c, int approximate);
// Number of operands of an elementwise op; 0 for any other.
int elementwise_arity(OpKind op);
// gelu and gelu_grad, which `approximate` = 1 turns to their tanh form.
bool has_tanh_form(OpKind op);
// Comparisons, logical ops and is_nan: the result is boolean.
bool gives_boolean(OpKind op);
// Shifts and operators on bits: not for floating-point numbers.
bool takes_integers_alone(OpKind op);

}  // namespace zeroplan
