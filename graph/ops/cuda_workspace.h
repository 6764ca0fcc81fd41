#pragma once
// Scratch bytes of the CUDA kernels; kernels carve up exactly what is counted here.
#include "graph/ops/workspace.h"

namespace zeroplan {

// matmul: what the library's algorithm may use, above all for sums of a split inner axis.
inline int64_t cuda_matmul_workspace(int64_t result_elements) {
  constexpr int64_t kMost = 32 << 20, kLeast = 1 << 20, kSums = 16 * sizeof(float);
  return result_elements >= (kMost - kLeast) / kSums ? kMost : workspace_round(kLeast + kSums * result_elements);
}

// layer_norm_grad, rms_norm_grad: sums of dgamma and dbeta per chunk of rows, [chunks, 2, C] in the type that is computed in.
inline int64_t norm_grad_chunk_rows(int64_t rows) { return std::max<int64_t>(8, (rows + 255) / 256); }
inline int64_t norm_grad_chunks(int64_t rows) { return (rows + norm_grad_chunk_rows(rows) - 1) / norm_grad_chunk_rows(rows); }
inline int64_t cuda_norm_grad_workspace(int64_t rows, int64_t columns, int64_t bytes) {
  return workspace_round(norm_grad_chunks(rows) * 2 * columns * bytes);
}

}  // namespace zeroplan
