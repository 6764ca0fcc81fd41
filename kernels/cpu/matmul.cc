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

// c[m,n] = a[m,k] · b[k,n] + beta · c, row-major, C with leading dimension ldc. By column blocks: sgemm packs all columns of b that it is
// given.
void product(MatrixForm fa, MatrixForm fb, int64_t m, int64_t n, int64_t k, const float* a, const float* b, float beta, float* c,
             int64_t ldc) {
  for (int64_t first = 0; first < n; first += kMatmulColumns) {
    const int64_t columns = std::min(kMatmulColumns, n - first);
    const dnnl_status_t status = dnnl_sgemm(fa.transposed ? 'T' : 'N', fb.transposed ? 'T' : 'N', m, columns, k, 1, a, fa.ld,
                                            b + first * (fb.transposed ? fb.ld : 1), fb.ld, beta, c + first, ldc);
    check(status == dnnl_success, "dnnl_sgemm refused a product");
  }
}
void product(MatrixForm fa, MatrixForm fb, int64_t m, int64_t n, int64_t k, const double* a, const double* b, double beta, double* c,
             int64_t ldc) {
  const auto form = [](MatrixForm f) { return f.transposed ? CblasTrans : CblasNoTrans; };
  cblas_dgemm(CblasRowMajor, form(fa), form(fb), static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), 1, a,
              static_cast<blasint>(fa.ld), b, static_cast<blasint>(fb.ld), beta, c, static_cast<blasint>(ldc));
}

template <typename T>
void multiply(const KernelArgs& args, const TensorView& a, const TensorView& b, const TensorView& y, T beta) {
  const MatmulShape<Space> s = matmul_shape<Space>(a, b, y, make_space);
  const int64_t count = s.batch.outer() * s.batch.inner();
  omp_set_num_threads(std::max(args.threads, 1));
  // A product inside the loop's threads runs on one of them.
  parallel_for(count > 1 ? args.threads : 1, count, [&](int64_t i) {
    const OuterIndex index(s.batch, i / s.batch.inner());
    const int64_t along = i % s.batch.inner();
    const auto at = [&](int operand) { return index.offset(operand) + along * s.batch.inner_stride(operand); };
    product(s.a, s.b, s.m, s.n, s.k, static_cast<const T*>(a.data) + at(0), static_cast<const T*>(b.data) + at(1), beta,
            static_cast<T*>(y.data) + at(2), s.ldc);
  });
}

template <typename T>
void add_bias(const T* bias, int64_t columns, T* y, int64_t count, int threads) {
  parallel_ranges(threads, count / columns, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < columns; ++i) y[row * columns + i] += bias[i];
  });
}

template <typename T>
void run_matmul(const KernelArgs& args) {
  const TensorView &first = args.inputs[0], &second = args.inputs[1];
  const TensorView a = as_matrix(first, true), b = as_matrix(second, false),
                   y = as_result(args.outputs[0], first.rank == 1, second.rank == 1);
  const int64_t count = count_elements(y);
  if (count == 0) return;
  const auto operand = [&](int i) { return i < args.input_count ? static_cast<const T*>(args.inputs[i].data) : nullptr; };
  const T *bias = operand(2), *added = operand(3);
  T* out = static_cast<T*>(y.data);
  if (added != nullptr && added != out) std::copy_n(added, count, out);
  if (a.dims[a.rank - 1] > 0)
    multiply<T>(args, a, b, y, added != nullptr ? T(1) : T(0));
  else if (added == nullptr)
    std::fill_n(out, count, T(0));
  if (bias != nullptr) add_bias(bias, b.dims[b.rank - 1], out, count, args.threads);
}

}  // namespace

void matmul_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_matmul<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
