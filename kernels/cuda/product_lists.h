#pragma once
// Which products kernels make, for whoever chooses their algorithms before the first step.
#include <functional>

#include "kernels/cuda/products.h"
#include "kernels/kernel.h"

namespace zeroplan {

using ProductTaker = std::function<void(const ProductProblem&)>;

// Those that the op's kernel makes of these operands, some more than once. Nothing is enqueued and no operand is read: addresses need be
// no more than aligned as the operands will be. The context of `args` is asked whether cuDNN takes a convolution.
void list_products(OpKind op, const KernelArgs& args, const ProductTaker& take);

namespace kernels_cuda {
void list_matmul_products(const KernelArgs& args, const ProductTaker& take);
void list_convolution_products(const KernelArgs& args, OpKind op, const ProductTaker& take);
}  // namespace kernels_cuda

}  // namespace zeroplan
