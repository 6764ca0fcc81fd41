#pragma once
// The matrices of a matmul and the batch axes around them, whichever library multiplies them.
#include <algorithm>

#include "base/error.h"
#include "base/tensor_view.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// A matrix as a product takes it: rows are contiguous, or (transposed) columns are.
struct MatrixForm {
  bool transposed = false;
  int64_t ld = 1;
};

// Batch axes of a, b and y as one space (operands 0, 1, 2), and the matrices within: y[m,n] = a[m,k] · b[k,n].
template <typename Space>
struct MatmulShape {
  int64_t m = 1, n = 1, k = 1;
  MatrixForm a, b;
  int64_t ldc = 1;
  Space batch;
};

inline MatrixForm matrix_form(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  if ((column_stride == 1 || columns <= 1) && (rows <= 1 || row_stride >= columns))
    return {false, rows <= 1 ? std::max<int64_t>(columns, 1) : row_stride};
  check((row_stride == 1 || rows <= 1) && (columns <= 1 || column_stride >= rows),
        "matmul was given a matrix with neither rows nor columns contiguous");
  return {true, columns <= 1 ? std::max<int64_t>(rows, 1) : column_stride};
}

// A view of rank >= 2: a lone vector is a row (a) or a column (b).
inline TensorView as_matrix(TensorView v, bool row) {
  if (v.rank >= 2) return v;
  v.rank = 2;
  v.dims[1] = row ? v.dims[0] : 1;
  v.strides[1] = row ? v.strides[0] : 1;
  if (row) v.dims[0] = 1;
  if (row) v.strides[0] = v.dims[1];
  return v;
}

// y with the axes that lone vectors removed, as size 1.
inline TensorView as_result(TensorView y, bool a_vector, bool b_vector) {
  if (a_vector) {  // [..., N] → [..., 1, N]
    if (b_vector) y.dims[y.rank] = 1, y.strides[y.rank] = 1, ++y.rank;
    y.dims[y.rank] = y.dims[y.rank - 1];
    y.strides[y.rank] = y.strides[y.rank - 1];
    y.dims[y.rank - 1] = 1;
    y.strides[y.rank - 1] = y.dims[y.rank];
    ++y.rank;
  } else if (b_vector) {
    y.dims[y.rank] = 1;
    y.strides[y.rank] = 1;
    ++y.rank;
  }
  return y;
}

inline TensorView batch_axes(TensorView v) {
  v.rank -= 2;
  return v;
}

// One product of B·M rows where b has no batch and the batches of a and y follow each other like rows.
template <typename Space>
inline void join_batch(MatmulShape<Space>& s) {
  const Space& batch = s.batch;
  if (batch.rank != 1 || batch.dims[0] == 1 || batch.strides[1][0] != 0 || s.a.transposed) return;
  if (batch.strides[0][0] != s.m * s.a.ld || batch.strides[2][0] != s.m * s.ldc) return;
  s.m *= batch.dims[0];
  s.batch.dims[0] = 1;
}

// Of views of rank >= 2. make_space(shape, views, count) gives the device's own space.
template <typename Space, typename MakeSpace>
inline MatmulShape<Space> matmul_shape(const TensorView& a, const TensorView& b, const TensorView& y, const MakeSpace& make_space) {
  MatmulShape<Space> s;
  s.m = a.dims[a.rank - 2];
  s.k = a.dims[a.rank - 1];
  s.n = b.dims[b.rank - 1];
  s.a = matrix_form(s.m, s.k, a.strides[a.rank - 2], a.strides[a.rank - 1]);
  s.b = matrix_form(s.k, s.n, b.strides[b.rank - 2], b.strides[b.rank - 1]);
  s.ldc = s.m <= 1 ? s.n : y.strides[y.rank - 2];
  const TensorView ba = batch_axes(a), bb = batch_axes(b), by = batch_axes(y);
  const TensorView* views[] = {&ba, &bb, &by};
  s.batch = make_space(by, views, 3);
  // A single row has no leading dimension of its own: rows of the batch may then be the rows of one product.
  if (s.m == 1 && s.batch.rank == 1 && s.batch.strides[0][0] >= s.k && a.strides[a.rank - 1] == 1) s.a = {false, s.batch.strides[0][0]};
  join_batch(s);
  return s;
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
