#pragma once
// Row indices in the order of their rows, equal ones in the order of their positions.
#include "kernels/kernel.h"

namespace zeroplan::kernels_cuda {

// rows, positions [entries] lie in the workspace. Row r of batch b has the number b · table rows + r; indices outside of the table are
// reported as faults and come last, with the number `end`.
struct SortedIndices {
  const int64_t *rows = nullptr, *positions = nullptr;
  int64_t entries = 0, end = 0;
};

// indices [batch, count] into tables of `table_rows` rows. Takes cuda_index_sort_workspace({entries, batch · table rows}) bytes of the
// workspace.
SortedIndices sort_indices(const KernelArgs& args, const TensorView& indices, int64_t batch, int64_t table_rows);

}  // namespace zeroplan::kernels_cuda
