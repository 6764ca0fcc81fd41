#pragma once
// The two ways of the convolution kernels.
#include "graph/ops/conv_shape.h"
#include "kernels/cuda/product_lists.h"
#include "kernels/kernel.h"

namespace zeroplan::kernels_cuda {

// op: conv, conv_grad_input or conv_grad_weight; neither batch nor result are empty, nor what is summed up.
void convolve_columns(const KernelArgs& args, const ConvShape& shape, OpKind op);
// The products of that, with nothing enqueued.
void list_column_products(const KernelArgs& args, const ConvShape& shape, OpKind op, const ProductTaker& take);
// By the convolution library. false, and nothing is enqueued, where it does not take the problem or has no algorithm that always gives the
// same bits within the workspace: a function of the problem alone.
bool convolve_library(const KernelArgs& args, const ConvShape& shape, OpKind op);
bool library_takes(const KernelArgs& args, const ConvShape& shape, OpKind op);  // whether it does

}  // namespace zeroplan::kernels_cuda
