#pragma once
#include "graph/ir/graph.h"

namespace zeroplan {

// Does the op's kernel write output `output` with these strides? Row-major always; outputs of the attention ops with their axes in any
// order that leaves no gap and the last axis innermost.
bool writes_layout(OpKind op, int output, const Shape& shape, const Strides& strides);

}  // namespace zeroplan
