// Max and average pooling over two dimensions.
#include <algorithm>
#include <limits>

#include "dnn/tensor.h"

using namespace cuda_host;
using namespace cuda_host::dnn;

namespace {

int output_size(int input, int window, int pad, int stride) { return 1 + (input + 2 * pad - window) / stride; }

bool is_max(const cudnnPoolingStruct& pool) { return pool.mode == CUDNN_POOLING_MAX || pool.mode == CUDNN_POOLING_MAX_DETERMINISTIC; }

// visit(output index, input indices of its window, divisor of an average)
template <class Visit>
void for_each_window(const Tensor& x, const Tensor& y, const cudnnPoolingStruct& pool, Visit visit) {
  std::vector<std::size_t> inside;
  for (int n = 0; n < y.size[0]; ++n)
    for (int c = 0; c < y.size[1]; ++c)
      for (int p = 0; p < y.size[2]; ++p)
        for (int q = 0; q < y.size[3]; ++q) {
          inside.clear();
          for (int r = 0; r < pool.window[0]; ++r)
            for (int s = 0; s < pool.window[1]; ++s) {
              const int h = p * pool.stride[0] - pool.pad[0] + r, w = q * pool.stride[1] - pool.pad[1] + s;
              if (h >= 0 && w >= 0 && h < x.size[2] && w < x.size[3]) inside.push_back(x.dense(n, c, h, w));
            }
          const bool padding_counts = pool.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
          visit(y.dense(n, c, p, q), inside,
                padding_counts ? static_cast<double>(pool.window[0] * pool.window[1]) : static_cast<double>(inside.size()));
        }
}

std::size_t largest(const std::vector<double>& x, const std::vector<std::size_t>& inside) {
  return *std::max_element(inside.begin(), inside.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
}

bool agree(const Tensor& x, const Tensor& y, const cudnnPoolingStruct& pool) {
  return y.size[0] == x.size[0] && y.size[1] == x.size[1] &&
         y.size[2] == output_size(x.size[2], pool.window[0], pool.pad[0], pool.stride[0]) &&
         y.size[3] == output_size(x.size[3], pool.window[1], pool.pad[1], pool.stride[1]);
}

}  // namespace

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pool) {
  CUDA_HOST_DNN_BEGIN();
  *pool = new cudnnPoolingStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pool) {
  delete pool;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pool, cudnnPoolingMode_t mode, cudnnNanPropagation_t, int window_h,
                                          int window_w, int pad_h, int pad_w, int stride_h, int stride_w) {
  CUDA_HOST_DNN_BEGIN();
  if (window_h < 1 || window_w < 1 || stride_h < 1 || stride_w < 1 || pad_h >= window_h || pad_w >= window_w) return CUDNN_STATUS_BAD_PARAM;
  *pool = {mode, {window_h, window_w}, {pad_h, pad_w}, {stride_h, stride_w}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t pool, const cudnnTensorDescriptor_t x, int* n, int* c,
                                                int* h, int* w) {
  *n = x->size[0];
  *c = x->size[1];
  *h = output_size(x->size[2], pool->window[0], pool->pad[0], pool->stride[0]);
  *w = output_size(x->size[3], pool->window[1], pool->pad[1], pool->stride[1]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pool, const void* alpha,
                                  const cudnnTensorDescriptor_t xd, const void* x, const void* beta, const cudnnTensorDescriptor_t yd,
                                  void* y) {
  CUDA_HOST_DNN_BEGIN();
  if (!agree(*xd, *yd, *pool) || !reachable(*xd, x) || !reachable(*yd, y)) return CUDNN_STATUS_BAD_PARAM;
  const Tensor tx = *xd, ty = *yd;
  const cudnnPoolingStruct how = *pool;
  const double a = scale(alpha, tx), b = scale(beta, tx);
  return enqueue(handle, __func__, [=] {
    const auto in = tx.read(x);
    std::vector<double> out(ty.count());
    for_each_window(tx, ty, how, [&](std::size_t yi, const std::vector<std::size_t>& inside, double divisor) {
      if (is_max(how)) {
        out[yi] = in[largest(in, inside)];
        return;
      }
      for (const std::size_t xi : inside) out[yi] += in[xi] / divisor;
    });
    ty.write(y, out, a, b);
  });
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pool, const void* alpha,
                                   const cudnnTensorDescriptor_t yd, const void* y, const cudnnTensorDescriptor_t dyd, const void* dy,
                                   const cudnnTensorDescriptor_t xd, const void* x, const void* beta, const cudnnTensorDescriptor_t dxd,
                                   void* dx) {
  CUDA_HOST_DNN_BEGIN();
  if (!agree(*xd, *dyd, *pool) || !reachable(*xd, x) || !reachable(*dyd, dy) || !reachable(*dxd, dx) || !reachable(*yd, y))
    return CUDNN_STATUS_BAD_PARAM;
  const Tensor tx = *xd, tdy = *dyd, tdx = *dxd;
  const cudnnPoolingStruct how = *pool;
  const double a = scale(alpha, tx), b = scale(beta, tx);
  return enqueue(handle, __func__, [=] {
    const auto in = tx.read(x), gradient = tdy.read(dy);
    std::vector<double> out(tdx.count(), 0.0);
    for_each_window(tx, tdy, how, [&](std::size_t yi, const std::vector<std::size_t>& inside, double divisor) {
      if (is_max(how)) {
        out[largest(in, inside)] += gradient[yi];
        return;
      }
      for (const std::size_t xi : inside) out[xi] += gradient[yi] / divisor;
    });
    tdx.write(dx, out, a, b);
  });
}
