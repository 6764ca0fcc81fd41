// matmul by the libraries' products: float by oneDNN's sgemm, double by OpenBLAS's dgemm.
#include <cblas.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/space.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kMatmulColumns = 4096;  // with at most 384 rows of b at a time: 6 MiB of packed b

// A matrix as a product takes it: rows are contiguous, or (transposed) columns are.
struct MatrixForm {
  bool transposed = false;
  int64_t ld = 1;
};

MatrixForm matrix_form(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  if ((column_stride == 1 || columns <= 1) && (rows <= 1 || row_stride >= columns))
    return {false, rows <= 1 ? std::max<int64_t>(columns, 1) : row_stride};
  check((row_stride == 1 || rows <= 1) && (columns <= 1 || column_stride >= rows),
        "matmul was given a matrix with neither rows nor columns contiguous");
  return {true, columns <= 1 ? std::max<int64_t>(rows, 1) : column_stride};
}

// c[m,n] = a[m,k] · b[k,n], row-major, C with leading dimension ldc. By column blocks: sgemm packs all columns of b that it is given.
void product(MatrixForm fa, MatrixForm fb, int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int64_t ldc) {
  for (int64_t first = 0; first < n; first += kMatmulColumns) {
    const int64_t columns = std::min(kMatmulColumns, n - first);
    const dnnl_status_t status = dnnl_sgemm(fa.transposed ? 'T' : 'N', fb.transposed ? 'T' : 'N', m, columns, k, 1, a, fa.ld,
                                            b + first * (fb.transposed ? fb.ld : 1), fb.ld, 0, c + first, ldc);
    check(status == dnnl_success, "dnnl_sgemm refused a product");
  }
}
void product(MatrixForm fa, MatrixForm fb, int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c, int64_t ldc) {
  const auto form = [](MatrixForm f) { return f.transposed ? CblasTrans : CblasNoTrans; };
  cblas_dgemm(CblasRowMajor, form(fa), form(fb), static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), 1, a,
              static_cast<blasint>(fa.ld), b, static_cast<blasint>(fb.ld), 0, c, static_cast<blasint>(ldc));
}

// Batch axes of a, b and y as one space (operands 0, 1, 2), and the matrices within.
struct MatmulShape {
  int64_t m = 1, n = 1, k = 1;
  MatrixForm a, b;
  int64_t ldc = 1;
  Space batch;
};

// A view of rank >= 2: a lone vector is a row (a) or a column (b).
TensorView as_matrix(TensorView v, bool row) {
  if (v.rank >= 2) return v;
  v.rank = 2;
  v.dims[1] = row ? v.dims[0] : 1;
  v.strides[1] = row ? v.strides[0] : 1;
  if (row) v.dims[0] = 1;
  if (row) v.strides[0] = v.dims[1];
  return v;
}

// y with the axes that lone vectors removed, as size 1.
TensorView as_result(TensorView y, bool a_vector, bool b_vector) {
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

TensorView batch_axes(TensorView v) {
  v.rank -= 2;
  return v;
}

// One product of B·M rows where b has no batch and the batches of a and y follow each other like rows.
void join_batch(MatmulShape& s) {
  const Space& batch = s.batch;
  if (batch.rank != 1 || batch.dims[0] == 1 || batch.strides[1][0] != 0 || s.a.transposed) return;
  if (batch.strides[0][0] != s.m * s.a.ld || batch.strides[2][0] != s.m * s.ldc) return;
  s.m *= batch.dims[0];
  s.batch.dims[0] = 1;
}

MatmulShape matmul_shape(const TensorView& a, const TensorView& b, const TensorView& y) {
  MatmulShape s;
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

template <typename T>
void run_matmul(const KernelArgs& args) {
  const TensorView &first = args.inputs[0], &second = args.inputs[1];
  const TensorView a = as_matrix(first, true), b = as_matrix(second, false),
                   y = as_result(args.outputs[0], first.rank == 1, second.rank == 1);
  if (count_elements(y) == 0) return;
  T* out = static_cast<T*>(y.data);
  if (a.dims[a.rank - 1] == 0) {
    std::fill_n(out, count_elements(y), T(0));
    return;
  }
  const MatmulShape s = matmul_shape(a, b, y);
  const int64_t count = s.batch.outer() * s.batch.inner();
  omp_set_num_threads(std::max(args.threads, 1));
  // A product inside the loop's threads runs on one of them.
  parallel_for(count > 1 ? args.threads : 1, count, [&](int64_t i) {
    const OuterIndex index(s.batch, i / s.batch.inner());
    const int64_t along = i % s.batch.inner();
    const auto at = [&](int operand) { return index.offset(operand) + along * s.batch.inner_stride(operand); };
    product(s.a, s.b, s.m, s.n, s.k, static_cast<const T*>(first.data) + at(0), static_cast<const T*>(second.data) + at(1), out + at(2),
            s.ldc);
  });
}

}  // namespace

void matmul_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_matmul<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
