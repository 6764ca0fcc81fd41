#pragma once
// Indices of rows of a table, i32 or i64; negative ones count from its end.
#include "base/tensor_view.h"
#include "kernels/cuda/launch.cuh"

namespace zeroplan::kernels_cuda {

struct RowIndices {
  const void* data;
  bool wide;  // i64
  int64_t rows;
  KernelFault* fault;
  int place;

  RowIndices(const KernelArgs& args, const TensorView& view, int64_t table_rows)
      : data(view.data), wide(view.dtype == DType::i64), rows(table_rows), fault(context_of(args).fault()), place(args.place) {}
  // The row of index k; -1, and a fault, where it is outside of the table.
  __device__ int64_t row(int64_t k) const {
    const int64_t given = wide ? static_cast<const int64_t*>(data)[k] : static_cast<const int32_t*>(data)[k];
    const int64_t row = given < 0 ? given + rows : given;
    if (row >= 0 && row < rows) return row;
    report_fault(fault, {KernelFault::index_outside_table, place, given, k, rows});
    return -1;
  }
};

}  // namespace zeroplan::kernels_cuda
