#pragma once
// Windows that slide over spatial axes, as the kernels of convolutions and pools walk through them.
#include "graph/ops/conv_shape.h"

namespace zeroplan::kernels_cuda {

// The result along an axis whose tap t is input element `at`: (at + before - t · dilation) / stride where that is whole; -1: none.
__device__ inline int64_t result_of(const WindowAxis& a, int64_t at, int64_t t) {
  const int64_t from = at + a.before - t * a.dilation;
  if (from < 0 || (a.stride > 1 && from % a.stride != 0)) return -1;
  const int64_t o = a.stride > 1 ? from / a.stride : from;
  return o < a.out ? o : -1;
}

}  // namespace zeroplan::kernels_cuda
