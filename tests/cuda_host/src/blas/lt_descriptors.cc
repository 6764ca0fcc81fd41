// cuBLASLt descriptors: create, set, get.
#include "blas/lt_descriptors.h"

#include <cstring>
#include <new>

using namespace cuda_host;
using namespace cuda_host::blas;

namespace {

template <class T, class Opaque>
cublasStatus_t place(Opaque* opaque, std::size_t size, const T& value) {
  if (opaque == nullptr || size < sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(opaque, 0, size);
  new (opaque) T(value);
  return CUBLAS_STATUS_SUCCESS;
}

struct Field {
  void* data = nullptr;
  std::size_t bytes = 0;
};
template <class T>
Field field(T& x) {
  return {&x, sizeof(T)};
}

Field layout_field(Layout& x, cublasLtMatrixLayoutAttribute_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return field(x.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return field(x.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return field(x.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return field(x.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD: return field(x.ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return field(x.batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return field(x.stride);
    default: return {};
  }
}
Field operation_field(Operation& x, cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return field(x.compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return field(x.scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return field(x.pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA: return field(x.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return field(x.transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return field(x.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return field(x.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return field(x.bias_stride);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return field(x.bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return field(x.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return field(x.aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return field(x.aux_stride);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return field(x.aux_type);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return field(x.ignored);
    default: return {};
  }
}
cublasStatus_t write(Field f, const void* source, std::size_t bytes) {
  if (f.data == nullptr || source == nullptr || bytes != f.bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(f.data, source, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t read(Field f, void* target, std::size_t bytes, std::size_t* written) {
  if (f.data == nullptr || target == nullptr || bytes < f.bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(target, f.data, f.bytes);
  if (written != nullptr) *written = f.bytes;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t ld) {
  Layout value;
  value.type = type;
  value.rows = rows;
  value.columns = columns;
  value.ld = ld;
  return place(layout, size, value);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  CUDA_HOST_BLAS_BEGIN();
  *layout = new cublasLtMatrixLayoutOpaque_t;
  return cublasLtMatrixLayoutInit_internal(*layout, sizeof(**layout), type, rows, columns, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  CUDA_HOST_BLAS_BEGIN();
  return write(layout_field(inside<Layout>(layout), attribute), value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, void* value,
                                                size_t bytes, size_t* written) {
  return read(layout_field(inside<Layout>(layout), attribute), value, bytes, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size, cublasComputeType_t compute, cudaDataType_t scale) {
  Operation value;
  value.compute = compute;
  value.scale = scale;
  return place(desc, size, value);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  CUDA_HOST_BLAS_BEGIN();
  *desc = new cublasLtMatmulDescOpaque_t;
  return cublasLtMatmulDescInit_internal(*desc, sizeof(**desc), compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  CUDA_HOST_BLAS_BEGIN();
  return write(operation_field(inside<Operation>(desc), attribute), value, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, void* value,
                                              size_t bytes, size_t* written) {
  return read(operation_field(inside<Operation>(desc), attribute), value, bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  return place(preference, size, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  CUDA_HOST_BLAS_BEGIN();
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return cublasLtMatmulPreferenceInit_internal(*preference, sizeof(**preference));
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return "CUBLAS_STATUS_NOT_SUPPORTED";
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_(error)";
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  CUDA_HOST_BLAS_BEGIN();
  // Only the workspace limit matters; the others are accepted.
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
  return write(field(inside<Preference>(preference).workspace), value, bytes);
}
