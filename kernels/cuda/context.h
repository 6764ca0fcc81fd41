#pragma once
// What CUDA kernels need beside their operands: the stream that they are enqueued on, handles of the libraries, and a record for faults.
#include <memory>

#include "kernels/cuda/convolutions.h"
#include "kernels/cuda/products.h"
#include "kernels/kernel.h"

namespace zeroplan {

class CudaContext : public KernelContext {
 public:
  // For kernels on `stream` of the current device. Allocates device memory: the fault record, and what the libraries keep. `choices`: as
  // Products has them.
  explicit CudaContext(cudaStream_t stream, std::shared_ptr<const ProductChoices> choices = nullptr);
  ~CudaContext() override;
  CudaContext(const CudaContext&) = delete;

  KernelFault take_fault() override;

  cudaStream_t stream() const { return stream_; }
  Products& products() { return *products_; }
  Convolutions& convolutions();                  // made at the first call
  KernelFault* fault() const { return fault_; }  // device memory
  int multiprocessors() const { return multiprocessors_; }

 private:
  cudaStream_t stream_;
  cublasLtHandle_t blas_ = nullptr;
  std::unique_ptr<Products> products_;
  cudnnHandle_t dnn_ = nullptr;
  std::unique_ptr<Convolutions> convolutions_;
  KernelFault* fault_ = nullptr;
  int multiprocessors_ = 1;
};

inline CudaContext& context_of(const KernelArgs& args) { return static_cast<CudaContext&>(*args.context); }

// The CUDA kernel of an op; nullptr for ops that have none.
Kernel cuda_kernel(OpKind op);

}  // namespace zeroplan
