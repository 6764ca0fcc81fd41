#pragma once
// Declares `<op>_kernel` for every op of ops.def in the namespace of the CUDA kernels.
#include "kernels/kernel.h"

namespace zeroplan::kernels_cuda {
#define ZP_OP(name)
#define ZP_KERNEL_OP(name) void name##_kernel(const KernelArgs&);
#include "graph/ops/ops.def"
#undef ZP_OP
}  // namespace zeroplan::kernels_cuda
