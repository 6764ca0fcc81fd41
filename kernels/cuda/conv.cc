// conv, conv_grad_input, conv_grad_weight: by the convolution library where it has a deterministic algorithm, else as products over
// columns.
#include "kernels/cuda/context.h"
#include "kernels/cuda/conv_paths.h"
#include "kernels/cuda/kernels.h"

namespace zeroplan::kernels_cuda {

namespace {

void convolve(const KernelArgs& args, OpKind op, const TensorView& x, const TensorView& w) {
  const TensorView& result = args.outputs[0];
  const ConvShape shape = conv_shape(x.dims, w.dims, x.rank, *args.attributes);
  if (result.elements() == 0) return;
  if (args.inputs[0].elements() == 0 || args.inputs[1].elements() == 0) {  // a sum over nothing
    const auto bytes = static_cast<size_t>(result.elements() * dtype_bytes(result.dtype));
    return check_cuda(cudaMemsetAsync(result.data, 0, bytes, context_of(args).stream()), "cudaMemsetAsync");
  }
  if (!convolve_library(args, shape, op)) convolve_columns(args, shape, op);
}

}  // namespace

void conv_kernel(const KernelArgs& args) { convolve(args, OpKind::conv, args.inputs[0], args.inputs[1]); }
void conv_grad_input_kernel(const KernelArgs& args) { convolve(args, OpKind::conv_grad_input, args.outputs[0], args.inputs[1]); }
void conv_grad_weight_kernel(const KernelArgs& args) { convolve(args, OpKind::conv_grad_weight, args.inputs[0], args.outputs[0]); }

}  // namespace zeroplan::kernels_cuda
