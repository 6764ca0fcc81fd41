// The cuBLASLt subset: handle, two "algorithms", matmul with epilogues.
#include <cstring>

#include "blas/gemm.h"
#include "blas/lt_descriptors.h"

using namespace cuda_host;
using namespace cuda_host::blas;

struct cublasLtContext {
  int unused = 0;
};

namespace {

Matrix to_matrix(const Layout& x, const void* data) {
  Matrix m;
  m.data = data;
  m.type = static_cast<cudaDataType_t>(x.type);
  m.row_major = x.order == CUBLASLT_ORDER_ROW;
  m.ld = x.ld;
  m.rows = static_cast<std::int64_t>(x.rows);
  m.columns = static_cast<std::int64_t>(x.columns);
  return m;
}

// False for an epilogue that is not emulated.
bool decode_epilogue(const Operation& op, const Layout& d, Epilogue& e) {
  const std::uint32_t kind = op.epilogue;
  const auto own_type = static_cast<cudaDataType_t>(d.type);
  e.bias_type = op.bias_type < 0 ? own_type : static_cast<cudaDataType_t>(op.bias_type);
  e.aux_type = op.aux_type < 0 ? own_type : static_cast<cudaDataType_t>(op.aux_type);
  if ((kind & CUBLASLT_EPILOGUE_BIAS) != 0) e.bias = op.bias;
  switch (kind & ~std::uint32_t{CUBLASLT_EPILOGUE_BIAS}) {
    case 0:
    case CUBLASLT_EPILOGUE_DEFAULT: break;
    case CUBLASLT_EPILOGUE_RELU: e.activation = Activation::Relu; break;
    case CUBLASLT_EPILOGUE_GELU: e.activation = Activation::Gelu; break;
    case CUBLASLT_EPILOGUE_GELU_AUX:
      e.activation = Activation::Gelu;
      e.aux = op.aux;
      break;
    case CUBLASLT_EPILOGUE_DGELU:
      e.activation = Activation::DGelu;
      e.aux = op.aux;
      break;
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      e.activation = Activation::DGelu;
      e.aux = op.aux;
      e.gradient = Epilogue::Gradient::RowsOfD;
      break;
    case CUBLASLT_EPILOGUE_BGRADA: e.gradient = Epilogue::Gradient::RowsOfA; break;
    case CUBLASLT_EPILOGUE_BGRADB: e.gradient = Epilogue::Gradient::ColumnsOfB; break;
    default: return false;
  }
  e.aux_ld = op.aux_ld;
  if (e.gradient != Epilogue::Gradient::None) e.bias_gradient = op.bias;
  const bool wants_bias = e.gradient != Epilogue::Gradient::None || (kind & CUBLASLT_EPILOGUE_BIAS) != 0;
  const bool wants_aux = (kind & 128U) != 0;
  if (wants_bias && op.bias == nullptr) return false;
  // The real library insists on a multiple of 8 too.
  return !wants_aux || (op.aux != nullptr && op.aux_ld % 8 == 0 && op.aux_ld >= static_cast<std::int64_t>(d.rows));
}

struct Problem {
  Gemm gemm;
  Layout a, b, c, d;
  Operation op;
};

cublasStatus_t decode(cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                      cublasLtMatrixLayout_t d, Problem& p) {
  if (op == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  p.op = inside<Operation>(op);
  p.a = inside<Layout>(a);
  p.b = inside<Layout>(b);
  p.c = inside<Layout>(c);
  p.d = inside<Layout>(d);
  p.gemm.a = to_matrix(p.a, nullptr);
  p.gemm.b = to_matrix(p.b, nullptr);
  p.gemm.c = to_matrix(p.c, nullptr);
  p.gemm.d = to_matrix(p.d, nullptr);
  p.gemm.transpose_a = p.op.transpose_a != CUBLAS_OP_N;
  p.gemm.transpose_b = p.op.transpose_b != CUBLAS_OP_N;
  p.gemm.double_precision = p.op.scale == CUDA_R_64F;
  const bool order_ok = p.a.order <= 1 && p.b.order <= 1 && p.c.order <= 1 && p.d.order <= 1;
  const bool types_ok = p.a.type == p.b.type && p.c.type == p.d.type && (p.op.scale == CUDA_R_32F || p.op.scale == CUDA_R_64F);
  const bool batch_ok = p.a.batch == p.d.batch && p.b.batch == p.d.batch && p.c.batch == p.d.batch;
  if (!order_ok || !p.gemm.shapes_agree() || !batch_ok) return CUBLAS_STATUS_INVALID_VALUE;
  if (!types_ok || !decode_epilogue(p.op, p.d, p.gemm.epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
T* advance(T* base, std::int64_t elements, std::size_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return base == nullptr ? nullptr : static_cast<T*>(static_cast<Byte*>(base) + elements * static_cast<std::int64_t>(size));
}

bool in_bounds(const Matrix& m, const Layout& layout) {
  const std::size_t last = static_cast<std::size_t>(layout.stride * (layout.batch - 1)) * type_size(m.type);
  return rt::is_device_range(m.data, last + m.bytes());
}

// Scales may be in device memory: read them when the stream gets there.
void run_batch(Problem p, const void* alpha, const void* beta) {
  const auto scale = static_cast<cudaDataType_t>(p.op.scale);
  if (alpha != nullptr) p.gemm.alpha = load(scale, alpha, 0);
  if (beta != nullptr) p.gemm.beta = load(scale, beta, 0);
  for (int i = 0; i < p.d.batch; ++i) {
    Gemm g = p.gemm;
    g.a.data = advance(g.a.data, i * p.a.stride, type_size(g.a.type));
    g.b.data = advance(g.b.data, i * p.b.stride, type_size(g.b.type));
    g.c.data = advance(g.c.data, i * p.c.stride, type_size(g.c.type));
    g.d.data = advance(g.d.data, i * p.d.stride, type_size(g.d.type));
    Epilogue& e = g.epilogue;
    e.bias = advance(e.bias, i * p.op.bias_stride, type_size(e.bias_type));
    e.bias_gradient = advance(e.bias_gradient, i * p.op.bias_stride, type_size(e.bias_type));
    e.aux = advance(e.aux, i * p.op.aux_stride, type_size(e.aux_type));
    run(g);
  }
}

// The two algorithms add up from the first term or from the last.
constexpr std::uint64_t kForwards = 0xC0DA, kBackwards = 0xC0DB;

// The one that the heuristic of the current device names.
std::uint64_t own_algorithm() { return rt::current_device() == settings().other_products ? kBackwards : kForwards; }

cublasStatus_t check_algorithm(const cublasLtMatmulAlgo_t& algo) {
  const std::uint64_t kind = algo.data[0];
  if (kind != kForwards && kind != kBackwards) return CUBLAS_STATUS_INVALID_VALUE;
  return settings().own_products_only && kind != own_algorithm() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  CUDA_HOST_BLAS_BEGIN();
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  CUDA_HOST_BLAS_BEGIN();
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusString(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS ? "success" : "cublas error"; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  CUDA_HOST_BLAS_BEGIN();
  if (handle == nullptr || preference == nullptr || results == nullptr || found == nullptr || wanted < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  Problem problem;
  if (const cublasStatus_t status = decode(op, a, b, c, d, problem); status != CUBLAS_STATUS_SUCCESS) return status;
  std::memset(results, 0, sizeof(results[0]));
  results[0].algo.data[0] = own_algorithm();
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1.0F;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  CUDA_HOST_BLAS_BEGIN();
  if (handle == nullptr || algo == nullptr || result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  if (const cublasStatus_t status = decode(op, a, b, c, d, problem); status != CUBLAS_STATUS_SUCCESS) return status;
  if (const cublasStatus_t status = check_algorithm(*algo); status != CUBLAS_STATUS_SUCCESS) return status;
  result->workspaceSize = 0;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1.0F;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, const void* alpha, const void* A, cublasLtMatrixLayout_t a,
                              const void* B, cublasLtMatrixLayout_t b, const void* beta, const void* C, cublasLtMatrixLayout_t c, void* D,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  CUDA_HOST_BLAS_BEGIN();
  if (handle == nullptr || alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Problem p;
  if (const cublasStatus_t status = decode(op, a, b, c, d, p); status != CUBLAS_STATUS_SUCCESS) return status;
  if (algo != nullptr) {  // else the library chooses
    if (const cublasStatus_t status = check_algorithm(*algo); status != CUBLAS_STATUS_SUCCESS) return status;
    p.gemm.backwards = algo->data[0] == kBackwards;
  }
  p.gemm.a.data = A;
  p.gemm.b.data = B;
  p.gemm.c.data = C;
  p.gemm.d.data = D;
  const bool scales_on_device = p.op.pointer_mode != CUBLASLT_POINTER_MODE_HOST;
  if (!scales_on_device) {
    p.gemm.alpha = load(static_cast<cudaDataType_t>(p.op.scale), alpha, 0);
    p.gemm.beta = load(static_cast<cudaDataType_t>(p.op.scale), beta, 0);
    alpha = beta = nullptr;
  }
  const bool c_used = scales_on_device || p.gemm.beta != 0;
  if (!in_bounds(p.gemm.a, p.a) || !in_bounds(p.gemm.b, p.b) || !in_bounds(p.gemm.d, p.d) || (c_used && !in_bounds(p.gemm.c, p.c)) ||
      !rt::is_device_range(workspace, workspace_bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const cudaError_t error =
      rt::enqueue_on(stream, {"cublasLtMatmul", cudaGraphNodeTypeKernel, [p, alpha, beta] { run_batch(p, alpha, beta); }});
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
