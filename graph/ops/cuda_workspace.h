#pragma once
// Scratch bytes of the CUDA kernels; kernels carve up exactly what is counted here.
#include "graph/ops/workspace.h"

namespace zeroplan {

// matmul: what the library's algorithm may use, above all for sums of a split inner axis.
inline int64_t product_workspace(int64_t result_elements) {
  constexpr int64_t kMost = 32 << 20, kLeast = 1 << 20, kSums = 16 * sizeof(float);
  return result_elements >= (kMost - kLeast) / kSums ? kMost : workspace_round(kLeast + kSums * result_elements);
}

}  // namespace zeroplan
