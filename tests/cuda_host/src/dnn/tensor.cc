#include "dnn/tensor.h"

namespace cuda_host::dnn {

std::size_t Tensor::count() const {
  std::size_t total = 1;
  for (const int s : size) total *= static_cast<std::size_t>(s);
  return total;
}

std::size_t Tensor::bytes() const {
  std::size_t last = 0;
  for (std::size_t d = 0; d < 4; ++d) last += static_cast<std::size_t>(size[d] - 1) * static_cast<std::size_t>(stride[d]);
  return count() == 0 ? 0 : (last + 1) * blas::type_size(element());
}

cudaDataType_t Tensor::element() const {
  switch (type) {
    case CUDNN_DATA_DOUBLE: return CUDA_R_64F;
    case CUDNN_DATA_HALF: return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

void Tensor::set_packed(cudnnTensorFormat_t format, cudnnDataType_t new_type, int n, int c, int h, int w) {
  type = new_type;
  size = {n, c, h, w};
  stride = format == CUDNN_TENSOR_NHWC ? std::array<int, 4>{h * w * c, 1, w * c, c} : std::array<int, 4>{c * h * w, h * w, w, 1};
}

std::vector<double> Tensor::read(const void* data) const {
  std::vector<double> values;
  values.reserve(count());
  for (int n = 0; n < size[0]; ++n)
    for (int c = 0; c < size[1]; ++c)
      for (int h = 0; h < size[2]; ++h)
        for (int w = 0; w < size[3]; ++w)
          values.push_back(blas::load(element(), data, std::int64_t{n} * stride[0] + c * stride[1] + h * stride[2] + w * stride[3]));
  return values;
}

void Tensor::write(void* data, const std::vector<double>& values, double alpha, double beta) const {
  std::size_t next = 0;
  for (int n = 0; n < size[0]; ++n)
    for (int c = 0; c < size[1]; ++c)
      for (int h = 0; h < size[2]; ++h)
        for (int w = 0; w < size[3]; ++w) {
          const std::int64_t at = std::int64_t{n} * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
          double value = alpha * values[next++];
          if (beta != 0) value += beta * blas::load(element(), data, at);
          blas::store(element(), data, at, value);
        }
}

double scale(const void* value, const Tensor& tensor) {
  return blas::load(tensor.type == CUDNN_DATA_DOUBLE ? CUDA_R_64F : CUDA_R_32F, value, 0);
}

bool reachable(const Tensor& tensor, const void* data) { return rt::is_device_range(data, tensor.bytes()); }

cudnnStatus_t enqueue(cudnnHandle_t handle, const char* name, std::function<void()> run) {
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  const cudaError_t error = rt::enqueue_on(handle->stream, {name, cudaGraphNodeTypeKernel, std::move(run)});
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace cuda_host::dnn

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  CUDA_HOST_DNN_BEGIN();
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  CUDA_HOST_DNN_BEGIN();
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "cudnn error"; }

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  CUDA_HOST_DNN_BEGIN();
  *tensor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  delete tensor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c,
                                         int h, int w) {
  CUDA_HOST_DNN_BEGIN();
  tensor->set_packed(format, type, n, c, h, w);
  return n > 0 && c > 0 && h > 0 && w > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int n, int c, int h, int w, int ns, int cs,
                                           int hs, int ws) {
  CUDA_HOST_DNN_BEGIN();
  tensor->type = type;
  tensor->size = {n, c, h, w};
  tensor->stride = {ns, cs, hs, ws};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  CUDA_HOST_DNN_BEGIN();
  *filter = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  delete filter;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type, cudnnTensorFormat_t format, int k, int c,
                                         int h, int w) {
  CUDA_HOST_DNN_BEGIN();
  filter->set_packed(format, type, k, c, h, w);
  return CUDNN_STATUS_SUCCESS;
}
