#pragma once
// The function behind each line of ops.def; a missing one does not link.
#include "graph/ops/op_def.h"

namespace zeroplan {

#define ZP_OP(name) OpDef name##_def();
#include "graph/ops/ops.def"
#undef ZP_OP

}  // namespace zeroplan
