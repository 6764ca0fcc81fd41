#pragma once
// Declares `<op>_kernel` for every op of ops.def in the namespace of this instruction set.
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {
#define ZP_OP(name)
#define ZP_KERNEL_OP(name) void name##_kernel(const KernelArgs&);
#include "graph/ops/ops.def"
#undef ZP_OP

// Runs the kernel on copies in float32 of the 16-bit operands, which come first in the workspace (graph/ops/halves.h).
void run_widened(const KernelArgs& args, Kernel kernel);

// Calls fn with a float or double zero. Kernels of floating-point ops exist in these two types; 16-bit operands come here widened.
template <typename Fn>
inline void visit_floating(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::f32: return fn(float{});
    case DType::f64: return fn(double{});
    default: unhandled_dtype(dtype);
  }
}
}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
