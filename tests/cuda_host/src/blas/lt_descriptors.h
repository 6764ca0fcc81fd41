// What the opaque cuBLASLt descriptors hold.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <type_traits>

#include "cudart/runtime.h"

namespace cuda_host::blas {

// These live inside the toolkit's opaque storage, so stack descriptors work too.
struct Layout {
  std::int32_t type = CUDA_R_32F, order = CUBLASLT_ORDER_COL, batch = 1;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0, stride = 0;
};
struct Operation {
  std::int32_t compute = CUBLAS_COMPUTE_32F, scale = CUDA_R_32F, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t bias_type = -1, aux_type = -1, ignored = 0;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_ld = 0, bias_stride = 0, aux_stride = 0;
};
struct Preference {
  std::uint64_t workspace = 0, ignored = 0;
};

template <class T, class Opaque>
T& inside(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(Opaque) && std::is_trivially_copyable_v<T>);
  return *reinterpret_cast<T*>(opaque);
}

}  // namespace cuda_host::blas

#define CUDA_HOST_BLAS_BEGIN() \
  if (int code = 0; cuda_host::rt::injected(__func__, code)) return static_cast<cublasStatus_t>(code)
