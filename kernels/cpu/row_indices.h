#pragma once
// Indices of rows of a table, negative ones counted from its end.
#include "kernels/cpu/space.h"
#include "kernels/failures.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

class RowIndices {
 public:
  // Fails where one of all `indices` lies outside of `rows`.
  RowIndices(const TensorView& indices, int64_t rows) : indices_(indices), rows_(rows) {
    const int64_t count = count_elements(indices);
    for (int64_t k = 0; k < count; ++k)
      if (row(k) < 0 || row(k) >= rows) index_outside_table(given(k), k, rows);
  }
  int64_t row(int64_t k) const {
    const int64_t i = given(k);
    return i < 0 ? i + rows_ : i;
  }

 private:
  int64_t given(int64_t k) const {
    return indices_.dtype == DType::i32 ? static_cast<const int32_t*>(indices_.data)[k] : static_cast<const int64_t*>(indices_.data)[k];
  }

  const TensorView& indices_;
  int64_t rows_;
};

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
