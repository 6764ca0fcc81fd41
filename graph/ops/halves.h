#pragma once
// 16-bit operands of CPU kernels: some kernels read and write them themselves, the others work on copies in float32.
#include "graph/ir/node.h"
#include "graph/ops/workspace.h"

namespace zeroplan {

constexpr bool reads_halves(OpKind op) {
  switch (op) {
#define ZP_OP(name)
#define ZP_UNARY_OP(name) case OpKind::name:
#define ZP_BINARY_OP(name) case OpKind::name:
#define ZP_TERNARY_OP(name) case OpKind::name:
#include "graph/ops/ops.def"
#undef ZP_OP
    case OpKind::elementwise:
    case OpKind::copy:
    case OpKind::concat:
    case OpKind::slice_grad:
    case OpKind::gather:
    case OpKind::fill:
    case OpKind::record_output:
    case OpKind::fill_padding:
    case OpKind::optimizer_update: return true;
    default: return false;
  }
}

// The copies come first in the workspace, inputs then outputs; what is left is the kernel's own.
inline int64_t widened_bytes(int64_t elements) { return workspace_round(elements * static_cast<int64_t>(sizeof(float))); }

}  // namespace zeroplan
