#include "kernels/cuda/errors.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(fmt::format("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(fmt::format("{} failed: {}", call, cublasLtGetStatusName(status)));
}

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(fmt::format("{} failed: {}", call, cudnnGetErrorString(status)));
}

}  // namespace zeroplan
