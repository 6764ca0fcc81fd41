#pragma once
#include "kernels/kernel.h"

namespace zeroplan::kernels_cuda {

// y[…, n] += bias[n], of one type; y contiguous.
void add_bias(const KernelArgs& args, const TensorView& y, const void* bias);

}  // namespace zeroplan::kernels_cuda
