// The classic cuBLAS GEMM family; always column-major.
#include <cublas_v2.h>

#include "blas/gemm.h"
#include "cudart/runtime.h"

using namespace cuda_host;
using namespace cuda_host::blas;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

struct Batch {
  Gemm gemm;
  long long stride_a = 0, stride_b = 0, stride_d = 0;
  int count = 1;
  cudaDataType_t scale = CUDA_R_32F;
};

const char* advance(const void* base, long long elements, cudaDataType_t type) {
  return static_cast<const char*>(base) + elements * static_cast<long long>(type_size(type));
}

Matrix matrix(const void* data, cudaDataType_t type, int rows, int columns, int ld) {
  Matrix m;
  m.data = data;
  m.type = type;
  m.rows = rows;
  m.columns = columns;
  m.ld = ld;
  return m;
}

void run_batch(Batch b, const void* alpha, const void* beta) {
  if (alpha != nullptr) b.gemm.alpha = load(b.scale, alpha, 0);
  if (beta != nullptr) b.gemm.beta = load(b.scale, beta, 0);
  for (int i = 0; i < b.count; ++i) {
    Gemm g = b.gemm;
    g.a.data = advance(g.a.data, i * b.stride_a, g.a.type);
    g.b.data = advance(g.b.data, i * b.stride_b, g.b.type);
    g.d.data = g.c.data = advance(g.d.data, i * b.stride_d, g.d.type);
    run(g);
  }
}

bool in_bounds(const Matrix& m, long long stride, int count) {
  return rt::is_device_range(m.data, static_cast<std::size_t>(stride * (count - 1)) * type_size(m.type) + m.bytes());
}

cublasStatus_t submit(cublasHandle_t handle, Batch b, const void* alpha, const void* beta) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr || beta == nullptr || b.count < 0 || b.gemm.m() < 0 || b.gemm.n() < 0 || b.gemm.k() < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (b.gemm.m() == 0 || b.gemm.n() == 0 || b.count == 0) return CUBLAS_STATUS_SUCCESS;
  b.gemm.c = b.gemm.d;
  b.gemm.double_precision = b.scale == CUDA_R_64F;
  if (!b.gemm.shapes_agree()) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
    b.gemm.alpha = load(b.scale, alpha, 0);
    b.gemm.beta = load(b.scale, beta, 0);
    alpha = beta = nullptr;
  }
  if (!in_bounds(b.gemm.a, b.stride_a, b.count) || !in_bounds(b.gemm.b, b.stride_b, b.count) || !in_bounds(b.gemm.d, b.stride_d, b.count)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const cudaError_t error =
      rt::enqueue_on(handle->stream, {"cublasGemm", cudaGraphNodeTypeKernel, [b, alpha, beta] { run_batch(b, alpha, beta); }});
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Operand {
  const void* data;
  cudaDataType_t type;
  int ld;
  long long stride;
};

Batch make_batch(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const Operand& a, const Operand& b, const Operand& c,
                 int count, cudaDataType_t scale) {
  Batch batch;
  batch.gemm.transpose_a = ta != CUBLAS_OP_N;
  batch.gemm.transpose_b = tb != CUBLAS_OP_N;
  batch.gemm.a = batch.gemm.transpose_a ? matrix(a.data, a.type, k, m, a.ld) : matrix(a.data, a.type, m, k, a.ld);
  batch.gemm.b = batch.gemm.transpose_b ? matrix(b.data, b.type, n, k, b.ld) : matrix(b.data, b.type, k, n, b.ld);
  batch.gemm.d = matrix(c.data, c.type, m, n, c.ld);
  batch.stride_a = a.stride;
  batch.stride_b = b.stride;
  batch.stride_d = c.stride;
  batch.count = count;
  batch.scale = scale;
  return batch;
}

}  // namespace

#define CUDA_HOST_BLAS_BEGIN() \
  if (int code = 0; rt::injected(__func__, code)) return static_cast<cublasStatus_t>(code)

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  CUDA_HOST_BLAS_BEGIN();
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  CUDA_HOST_BLAS_BEGIN();
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, size_t bytes) {
  CUDA_HOST_BLAS_BEGIN();
  return rt::is_device_range(workspace, bytes) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS ? "success" : "cublas error"; }
const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_(error)";
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float* alpha,
                              const float* A, int lda, const float* B, int ldb, const float* beta, float* C, int ldc) {
  CUDA_HOST_BLAS_BEGIN();
  return submit(handle,
                make_batch(ta, tb, m, n, k, {A, CUDA_R_32F, lda, 0}, {B, CUDA_R_32F, ldb, 0}, {C, CUDA_R_32F, ldc, 0}, 1, CUDA_R_32F),
                alpha, beta);
}
cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double* alpha,
                              const double* A, int lda, const double* B, int ldb, const double* beta, double* C, int ldc) {
  CUDA_HOST_BLAS_BEGIN();
  return submit(handle,
                make_batch(ta, tb, m, n, k, {A, CUDA_R_64F, lda, 0}, {B, CUDA_R_64F, ldb, 0}, {C, CUDA_R_64F, ldc, 0}, 1, CUDA_R_64F),
                alpha, beta);
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                         const float* alpha, const float* A, int lda, long long stride_a, const float* B, int ldb,
                                         long long stride_b, const float* beta, float* C, int ldc, long long stride_c, int count) {
  CUDA_HOST_BLAS_BEGIN();
  return submit(handle,
                make_batch(ta, tb, m, n, k, {A, CUDA_R_32F, lda, stride_a}, {B, CUDA_R_32F, ldb, stride_b}, {C, CUDA_R_32F, ldc, stride_c},
                           count, CUDA_R_32F),
                alpha, beta);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType type_a, int lda, const void* B, cudaDataType type_b, int ldb, const void* beta,
                            void* C, cudaDataType type_c, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
  CUDA_HOST_BLAS_BEGIN();
  const cudaDataType_t scale = compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  return submit(handle, make_batch(ta, tb, m, n, k, {A, type_a, lda, 0}, {B, type_b, ldb, 0}, {C, type_c, ldc, 0}, 1, scale), alpha, beta);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                          const void* alpha, const void* A, cudaDataType type_a, int lda, long long stride_a, const void* B,
                                          cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* C, cudaDataType type_c,
                                          int ldc, long long stride_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  CUDA_HOST_BLAS_BEGIN();
  const cudaDataType_t scale = compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  return submit(
      handle, make_batch(ta, tb, m, n, k, {A, type_a, lda, stride_a}, {B, type_b, ldb, stride_b}, {C, type_c, ldc, stride_c}, count, scale),
      alpha, beta);
}
