#include "kernels/cuda/context.h"

namespace zeroplan {

CudaContext::CudaContext(cudaStream_t stream, std::shared_ptr<const ProductChoices> choices) : stream_(stream) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  check_cublas(cublasLtCreate(&blas_), "cublasLtCreate");
  products_ = std::make_unique<Products>(blas_, std::move(choices));
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, sizeof(KernelFault)), "cudaMalloc");
  fault_ = static_cast<KernelFault*>(memory);
  check_cuda(cudaMemsetAsync(fault_, 0, sizeof(KernelFault), stream_), "cudaMemsetAsync");  // the stream waits for no other
}

CudaContext::~CudaContext() {
  convolutions_.reset();
  if (dnn_ != nullptr) cudnnDestroy(dnn_);
  cublasLtDestroy(blas_);
  cudaFree(fault_);
}

Convolutions& CudaContext::convolutions() {
  if (convolutions_) return *convolutions_;
  if (dnn_ == nullptr) check_cudnn(cudnnCreate(&dnn_), "cudnnCreate");
  check_cudnn(cudnnSetStream(dnn_, stream_), "cudnnSetStream");
  convolutions_ = std::make_unique<Convolutions>(dnn_);
  return *convolutions_;
}

KernelFault CudaContext::take_fault() {
  KernelFault found;
  check_cuda(cudaMemcpy(&found, fault_, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (found.kind != KernelFault::none) check_cuda(cudaMemsetAsync(fault_, 0, sizeof found, stream_), "cudaMemsetAsync");
  return found;
}

}  // namespace zeroplan
