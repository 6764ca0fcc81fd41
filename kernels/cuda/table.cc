// Ties every ZP_KERNEL_OP of ops.def to its CUDA function `<op>_kernel`; one that is not written does not link.
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"

namespace zeroplan {

Kernel cuda_kernel(OpKind op) {
#define ZP_OP(name) nullptr,
#define ZP_KERNEL_OP(name) kernels_cuda::name##_kernel,
  static constexpr Kernel kKernels[] = {
#include "graph/ops/ops.def"
  };
#undef ZP_OP
  return kKernels[static_cast<int>(op)];
}

}  // namespace zeroplan
