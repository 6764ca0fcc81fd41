// Ties every ZP_KERNEL_OP of ops.def to its CUDA function `<op>_kernel`; one that is neither written nor in missing.def does not link.
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"

namespace zeroplan {

namespace kernels_cuda {
#define ZP_MISSING(name) \
  void name##_kernel(const KernelArgs&) {}
#include "kernels/cuda/missing.def"
}  // namespace kernels_cuda

Kernel cuda_kernel(OpKind op) {
  switch (op) {
#define ZP_MISSING(name) case OpKind::name:
#include "kernels/cuda/missing.def"
    return nullptr;
    default: break;
  }
#define ZP_OP(name) nullptr,
#define ZP_KERNEL_OP(name) kernels_cuda::name##_kernel,
  static constexpr Kernel kKernels[] = {
#include "graph/ops/ops.def"
  };
#undef ZP_OP
  return kKernels[static_cast<int>(op)];
}

}  // namespace zeroplan
