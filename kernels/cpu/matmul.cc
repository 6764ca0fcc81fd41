// matmul by the libraries' products: float by oneDNN's sgemm, double by OpenBLAS's dgemm.
#include <cblas.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/space.h"
#include "kernels/scalar/matmul_shape.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kMatmulColumns = 4096;  // with at most 384 rows of b at a time: 6 MiB of packed b

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
  const MatmulShape s = matmul_shape<Space>(a, b, y, make_space);
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
