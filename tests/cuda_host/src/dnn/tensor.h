// Descriptors of the cuDNN subset: four dimensions with any strides.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blas/gemm.h"
#include "cudart/runtime.h"

namespace cuda_host::dnn {

struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int, 4> size = {};  // n c h w, or k c r s of a filter
  std::array<int, 4> stride = {};

  std::size_t count() const;
  std::size_t bytes() const;  // first to past the last element
  cudaDataType_t element() const;
  void set_packed(cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w);
  // Values in n c h w order, whatever the strides.
  std::vector<double> read(const void* data) const;
  void write(void* data, const std::vector<double>& values, double alpha, double beta) const;
  std::size_t dense(int n, int c, int h, int w) const { return static_cast<std::size_t>(((n * size[1] + c) * size[2] + h) * size[3] + w); }
};

// Scales are float, except double for double tensors; always host memory.
double scale(const void* value, const Tensor& tensor);
bool reachable(const Tensor& tensor, const void* data);
cudnnStatus_t enqueue(cudnnHandle_t handle, const char* name, std::function<void()> run);

}  // namespace cuda_host::dnn

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct : cuda_host::dnn::Tensor {};
struct cudnnFilterStruct : cuda_host::dnn::Tensor {};
struct cudnnConvolutionStruct {
  std::array<int, 2> pad = {}, stride = {1, 1}, dilation = {1, 1};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  int groups = 1;
};
struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  std::array<int, 2> window = {}, pad = {}, stride = {1, 1};
};

#define CUDA_HOST_DNN_BEGIN() \
  if (int code = 0; cuda_host::rt::injected(__func__, code)) return static_cast<cudnnStatus_t>(code)
