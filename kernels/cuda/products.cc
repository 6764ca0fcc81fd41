#include "kernels/cuda/products.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

namespace {

cudaDataType_t library_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::f64: return CUDA_R_64F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    default: unhandled_dtype(dtype);
  }
}

template <typename T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  check_cublas(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}
template <typename T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute");
}
template <typename T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
}

// A row-major matrix [rows, columns] is a column-major one [columns, rows].
void make_layout(cublasLtMatrixLayoutOpaque_t& layout, const ProductMatrix& matrix, DType dtype, int64_t rows, int64_t columns,
                 int64_t batch) {
  const auto contiguous = static_cast<uint64_t>(matrix.transposed ? rows : columns),
             other = static_cast<uint64_t>(matrix.transposed ? columns : rows);
  check_cublas(cublasLtMatrixLayoutInit(&layout, library_type(dtype), contiguous, other, matrix.ld), "cublasLtMatrixLayoutInit");
  set(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
  set(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
}

// Sums of a split inner axis are kept in the type that is computed in, never rounded to 16 bits between.
void make_preference(cublasLtMatmulPreferenceOpaque_t& preference, const ProductProblem& p) {
  check_cublas(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
  set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(p.workspace_bytes));
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (!is_half(p.y_dtype)) schemes |= CUBLASLT_REDUCTION_SCHEME_INPLACE;
  set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(p.b.alignment));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(p.a.alignment));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(p.y.alignment));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(p.y.alignment));
}

}  // namespace

bool Products::find_algorithm(const ProductProblem& p, Prepared& made) const {
  cublasLtMatmulPreferenceOpaque_t preference;
  make_preference(preference, p);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, &made.operation, &made.b, &made.a, &made.y, &made.y, &preference, 1, &result, &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  made.algorithm = result.algo;
  return status == CUBLAS_STATUS_SUCCESS && found > 0;
}

// Row-major y = a · b is column-major yᵀ = bᵀ · aᵀ: the library's A is b, and its B is a.
Products::Prepared Products::prepare(const ProductProblem& p, const ProductData& data) const {
  Prepared made;
  const bool doubles = p.dtype == DType::f64;
  check_cublas(
      cublasLtMatmulDescInit(&made.operation, doubles ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, doubles ? CUDA_R_64F : CUDA_R_32F),
      "cublasLtMatmulDescInit");
  const auto form = [](const ProductMatrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(&made.operation, CUBLASLT_MATMUL_DESC_TRANSA, form(p.b));
  set(&made.operation, CUBLASLT_MATMUL_DESC_TRANSB, form(p.a));
  make_layout(made.a, p.a, p.dtype, p.m, p.k, p.batch);
  make_layout(made.b, p.b, p.dtype, p.k, p.n, p.batch);
  make_layout(made.y, p.y, p.y_dtype, p.m, p.n, p.batch);
  made.adds_bias = p.bias && !doubles;
  if (made.adds_bias) {
    set(&made.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(&made.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
    if (find_algorithm(p, made)) return made;
    made.adds_bias = false;
    set(&made.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  }
  if (find_algorithm(p, made)) return made;
  throw Error(fmt::format("cuBLASLt has no algorithm for {} products [{}, {}] · [{}, {}] of {} into {} within {} bytes of workspace",
                          p.batch, p.m, p.k, p.k, p.n, dtype_name(p.dtype), dtype_name(p.y_dtype), p.workspace_bytes));
}

bool Products::run(const ProductProblem& problem, const ProductData& data, void* workspace, cudaStream_t stream) {
  auto at = prepared_.find(problem);
  if (at == prepared_.end()) at = prepared_.emplace(problem, prepare(problem, data)).first;
  Prepared& made = at->second;
  if (made.adds_bias) set(&made.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
  const double alpha = 1, beta = problem.added ? 1 : 0;
  const float alpha_float = 1, beta_float = problem.added ? 1 : 0;
  const bool doubles = problem.dtype == DType::f64;
  check_cublas(cublasLtMatmul(handle_, &made.operation, doubles ? static_cast<const void*>(&alpha) : &alpha_float, data.b, &made.b, data.a,
                              &made.a, doubles ? static_cast<const void*>(&beta) : &beta_float, problem.added ? data.added : data.y,
                              &made.y, data.y, &made.y, &made.algorithm, workspace, static_cast<size_t>(problem.workspace_bytes), stream),
               "cublasLtMatmul");
  return made.adds_bias;
}

}  // namespace zeroplan
