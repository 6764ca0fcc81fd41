#pragma once
// Copies between two strided views of one shape.
#include "kernels/kernel.h"

namespace zeroplan::kernels_cuda {

// from and to have the same dims and element size and do not overlap.
void copy_strided(const KernelArgs& args, const TensorView& from, const TensorView& to);

}  // namespace zeroplan::kernels_cuda
