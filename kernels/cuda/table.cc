// Ties every ZP_KERNEL_OP of ops.def to its CUDA function `<op>_kernel`; one that is not written does not link.
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/product_lists.h"

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

void list_products(OpKind op, const KernelArgs& args, const ProductTaker& take) {
  switch (op) {
    case OpKind::matmul: return kernels_cuda::list_matmul_products(args, take);
    case OpKind::conv:
    case OpKind::conv_grad_input:
    case OpKind::conv_grad_weight: return kernels_cuda::list_convolution_products(args, op, take);
    default: return;
  }
}

}  // namespace zeroplan
