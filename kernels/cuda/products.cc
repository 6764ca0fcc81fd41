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

bool is_doubles(const ProductProblem& p) { return p.dtype == DType::f64; }

std::string matrix_text(const char* name, const ProductMatrix& m) {
  return fmt::format("{}{} by {} each {}, aligned to {}", name, m.transposed ? "ᵀ" : "", m.ld, m.batch_stride, m.alignment);
}

}  // namespace

std::string product_text(const ProductProblem& p) {
  const std::string bias = p.bias_alignment > 0 ? fmt::format(" + bias aligned to {}", p.bias_alignment) : "";
  return fmt::format("{} of {} [{}, {}] · [{}, {}]{}{} into {}; {}; {}; {}; {} bytes of workspace", p.batch, dtype_name(p.dtype), p.m, p.k,
                     p.k, p.n, bias, p.added ? " + a matrix" : "", dtype_name(p.y_dtype), matrix_text("a", p.a), matrix_text("b", p.b),
                     matrix_text("y", p.y), p.workspace_bytes);
}

int product_alignment(uintptr_t addresses) {
  constexpr uintptr_t kMost = 128;
  const uintptr_t low = addresses | kMost;
  return static_cast<int>(low & (~low + 1));
}

bool Products::find_algorithm(const ProductProblem& p, Prepared& made) const {
  cublasLtMatmulPreferenceOpaque_t preference;
  make_preference(preference, p);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, &made.operation, &made.b, &made.a, &made.y, &made.y, &preference, 1, &result, &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  made.choice.algorithm = result.algo;
  return status == CUBLAS_STATUS_SUCCESS && found > 0;
}

// Row-major y = a · b is column-major yᵀ = bᵀ · aᵀ: the library's A is b, and its B is a.
Products::Prepared Products::prepare(const ProductProblem& p, bool adds_bias) {
  Prepared made = {};
  check_cublas(cublasLtMatmulDescInit(&made.operation, is_doubles(p) ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                      is_doubles(p) ? CUDA_R_64F : CUDA_R_32F),
               "cublasLtMatmulDescInit");
  const auto form = [](const ProductMatrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(&made.operation, CUBLASLT_MATMUL_DESC_TRANSA, form(p.b));
  set(&made.operation, CUBLASLT_MATMUL_DESC_TRANSB, form(p.a));
  make_layout(made.a, p.a, p.dtype, p.m, p.k, p.batch);
  make_layout(made.b, p.b, p.dtype, p.k, p.n, p.batch);
  make_layout(made.y, p.y, p.y_dtype, p.m, p.n, p.batch);
  made.choice.adds_bias = adds_bias;
  if (!adds_bias) return made;
  set(&made.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  // Until there is one: an address of its alignment, which the library may look at.
  set(&made.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(static_cast<uintptr_t>(p.bias_alignment)));
  return made;
}

ProductChoice Products::choose(const ProductProblem& p) const {
  if (p.bias_alignment > 0 && !is_doubles(p))
    if (Prepared made = prepare(p, true); find_algorithm(p, made)) return made.choice;
  if (Prepared made = prepare(p, false); find_algorithm(p, made)) return made.choice;
  throw Error("cuBLASLt has no algorithm for the product " + product_text(p));
}

std::string Products::trouble_of(const ProductProblem& p, const ProductChoice& choice) const {
  Prepared made = prepare(p, choice.adds_bias);
  cublasLtMatmulHeuristicResult_t result = {};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle_, &made.operation, &made.b, &made.a, &made.y, &made.y, &choice.algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS) return cublasLtGetStatusName(status);
  if (static_cast<int64_t>(result.workspaceSize) <= p.workspace_bytes) return "";
  return fmt::format("it wants {} bytes of workspace here", result.workspaceSize);
}

Products::Prepared& Products::prepared(const ProductProblem& problem) {
  const auto at = prepared_.find(problem);
  if (at != prepared_.end()) return at->second;
  ProductChoice choice;
  if (choices_ == nullptr) {
    choice = choose(problem);
  } else {
    const auto chosen = choices_->find(product_text(problem));
    if (chosen == choices_->end()) throw Error("no algorithm was chosen at the start for the product " + product_text(problem));
    choice = chosen->second;
  }
  Prepared made = prepare(problem, choice.adds_bias);
  made.choice = choice;
  return prepared_.emplace(problem, made).first->second;
}

bool Products::run(const ProductProblem& problem, const ProductData& data, void* workspace, cudaStream_t stream) {
  Prepared& made = prepared(problem);
  if (made.choice.adds_bias) set(&made.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
  const double alpha = 1, beta = problem.added ? 1 : 0;
  const float alpha_float = 1, beta_float = problem.added ? 1 : 0;
  const bool doubles = is_doubles(problem);
  check_cublas(
      cublasLtMatmul(handle_, &made.operation, doubles ? static_cast<const void*>(&alpha) : &alpha_float, data.b, &made.b, data.a, &made.a,
                     doubles ? static_cast<const void*>(&beta) : &beta_float, problem.added ? data.added : data.y, &made.y, data.y, &made.y,
                     &made.choice.algorithm, workspace, static_cast<size_t>(problem.workspace_bytes), stream),
      "cublasLtMatmul");
  return made.choice.adds_bias;
}

}  // namespace zeroplan
