// conv, conv_grad_input, conv_grad_weight: by the convolution library where it has a deterministic algorithm, else as products over
// columns.
#include "kernels/cuda/context.h"
#include "kernels/cuda/conv_paths.h"
#include "kernels/cuda/kernels.h"

namespace zeroplan::kernels_cuda {

namespace {

ConvShape shape_of(const KernelArgs& args, OpKind op) {
  const TensorView &x = op == OpKind::conv_grad_input ? args.outputs[0] : args.inputs[0],
                   &w = op == OpKind::conv_grad_weight ? args.outputs[0] : args.inputs[1];
  return conv_shape(x.dims, w.dims, x.rank, *args.attributes);
}

bool sums_nothing(const KernelArgs& args) { return args.inputs[0].elements() == 0 || args.inputs[1].elements() == 0; }

void convolve(const KernelArgs& args, OpKind op) {
  const TensorView& result = args.outputs[0];
  if (result.elements() == 0) return;
  const ConvShape shape = shape_of(args, op);
  if (sums_nothing(args)) {
    const auto bytes = static_cast<size_t>(result.elements() * dtype_bytes(result.dtype));
    return check_cuda(cudaMemsetAsync(result.data, 0, bytes, context_of(args).stream()), "cudaMemsetAsync");
  }
  if (!convolve_library(args, shape, op)) convolve_columns(args, shape, op);
}

}  // namespace

void conv_kernel(const KernelArgs& args) { convolve(args, OpKind::conv); }
void conv_grad_input_kernel(const KernelArgs& args) { convolve(args, OpKind::conv_grad_input); }
void conv_grad_weight_kernel(const KernelArgs& args) { convolve(args, OpKind::conv_grad_weight); }

void list_convolution_products(const KernelArgs& args, OpKind op, const ProductTaker& take) {
  if (args.outputs[0].elements() == 0 || sums_nothing(args)) return;
  const ConvShape shape = shape_of(args, op);
  if (!library_takes(args, shape, op)) list_column_products(args, shape, op, take);
}

}  // namespace zeroplan::kernels_cuda
