#pragma once
// Status codes of CUDA and its libraries as Error: the call, the code's name, the library's own words.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace zeroplan {

void check_cuda(cudaError_t status, const char* call);
void check_cublas(cublasStatus_t status, const char* call);
void check_cudnn(cudnnStatus_t status, const char* call);

}  // namespace zeroplan
