// Direct convolution: one loop nest names every (input, weight, output) triple,
// and the three passes differ only in which of them is the sum.
#include <algorithm>
#include <atomic>

#include "dnn/tensor.h"

using namespace cuda_host;
using namespace cuda_host::dnn;

namespace {

int output_size(int input, int filter, int pad, int stride, int dilation) {
  return 1 + (input + 2 * pad - dilation * (filter - 1) - 1) / stride;
}

template <class Visit>
void for_each_triple(const Tensor& x, const Tensor& w, const Tensor& y, const cudnnConvolutionStruct& conv, Visit visit) {
  const int per_group_out = y.size[1] / conv.groups;
  for (int n = 0; n < y.size[0]; ++n)
    for (int k = 0; k < y.size[1]; ++k)
      for (int p = 0; p < y.size[2]; ++p)
        for (int q = 0; q < y.size[3]; ++q)
          for (int c = 0; c < w.size[1]; ++c)
            for (int r = 0; r < w.size[2]; ++r)
              for (int s = 0; s < w.size[3]; ++s) {
                const int h = p * conv.stride[0] - conv.pad[0] + r * conv.dilation[0];
                const int v = q * conv.stride[1] - conv.pad[1] + s * conv.dilation[1];
                if (h < 0 || v < 0 || h >= x.size[2] || v >= x.size[3]) continue;
                const bool flip = conv.mode == CUDNN_CONVOLUTION;
                const int fr = flip ? w.size[2] - 1 - r : r, fs = flip ? w.size[3] - 1 - s : s;
                visit(x.dense(n, k / per_group_out * w.size[1] + c, h, v), w.dense(k, c, fr, fs), y.dense(n, k, p, q));
              }
}

bool agree(const Tensor& x, const Tensor& w, const Tensor& y, const cudnnConvolutionStruct& conv) {
  return y.size[0] == x.size[0] && y.size[1] == w.size[0] && x.size[1] == w.size[1] * conv.groups && y.size[1] % conv.groups == 0 &&
         y.size[2] == output_size(x.size[2], w.size[2], conv.pad[0], conv.stride[0], conv.dilation[0]) &&
         y.size[3] == output_size(x.size[3], w.size[3], conv.pad[1], conv.stride[1], conv.dilation[1]);
}

struct Operand {
  Tensor tensor;
  const void* data;
};
enum class Result { Y, X, W };

// What the emulated algorithms want: each pass has one that takes more workspace than there is, and one that takes some; the gradients
// also have one whose bits differ from call to call, as additions in no fixed order give on a device.
constexpr std::size_t kTooMuch = std::size_t{1} << 40, kSome = 4096;
struct Traits {
  int algorithm;
  std::size_t bytes;
  bool deterministic;
};
constexpr Traits kForward[] = {{CUDNN_CONVOLUTION_FWD_ALGO_FFT, kTooMuch, true},
                               {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, kSome, true},
                               {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0, true},
                               {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 0, true}};
constexpr Traits kData[] = {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, 0, false},
                            {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, kTooMuch, true},
                            {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, kSome, true},
                            {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, 0, true}};
constexpr Traits kFilter[] = {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, 0, false},
                              {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, kTooMuch, true},
                              {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, kSome, true},
                              {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 0, true}};

template <std::size_t n>
const Traits* find(const Traits (&all)[n], int algorithm) {
  for (const Traits& t : all)
    if (t.algorithm == algorithm) return &t;
  return nullptr;
}

// The operand named by `result` is written, the other two are read.
cudnnStatus_t submit(cudnnHandle_t handle, const char* name, Operand x, Operand w, Operand y, const cudnnConvolutionStruct& conv,
                     Result result, const void* alpha, const void* beta, const void* workspace, std::size_t workspace_bytes,
                     const Traits* traits) {
  if (traits == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  if (workspace_bytes < traits->bytes) return CUDNN_STATUS_BAD_PARAM;
  if (!agree(x.tensor, w.tensor, y.tensor, conv)) return CUDNN_STATUS_BAD_PARAM;
  if (!reachable(x.tensor, x.data) || !reachable(w.tensor, w.data) || !reachable(y.tensor, y.data) ||
      !rt::is_device_range(workspace, workspace_bytes)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  static std::atomic<int> calls{0};
  const double noise = traits->deterministic ? 1 : 1 + 1e-6 * (calls.fetch_add(1) % 7);
  const double a = noise * scale(alpha, x.tensor), b = scale(beta, x.tensor);
  return enqueue(handle, name, [=] {
    const Operand& target = result == Result::Y ? y : result == Result::X ? x : w;
    std::vector<double> sum(target.tensor.count(), 0.0);
    const auto vx = result == Result::X ? std::vector<double>{} : x.tensor.read(x.data);
    const auto vw = result == Result::W ? std::vector<double>{} : w.tensor.read(w.data);
    const auto vy = result == Result::Y ? std::vector<double>{} : y.tensor.read(y.data);
    for_each_triple(x.tensor, w.tensor, y.tensor, conv, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
      switch (result) {
        case Result::Y: sum[yi] += vx[xi] * vw[wi]; break;
        case Result::X: sum[xi] += vy[yi] * vw[wi]; break;
        case Result::W: sum[wi] += vx[xi] * vy[yi]; break;
      }
    });
    target.tensor.write(const_cast<void*>(target.data), sum, a, b);
  });
}

template <std::size_t n, class Perf>
cudnnStatus_t list(const Traits (&all)[n], int wanted, int* found, Perf* results) {
  if (wanted < 1 || found == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *found = std::min(wanted, static_cast<int>(n));
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].algo = static_cast<decltype(results[i].algo)>(all[i].algorithm);
    results[i].status = CUDNN_STATUS_SUCCESS;
    results[i].memory = all[i].bytes;
    results[i].determinism = all[i].deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  }
  return CUDNN_STATUS_SUCCESS;
}

template <std::size_t n>
cudnnStatus_t size(const Traits (&all)[n], int algorithm, std::size_t* bytes) {
  const Traits* traits = find(all, algorithm);
  if (traits == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = traits->bytes;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* conv) {
  CUDA_HOST_DNN_BEGIN();
  *conv = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv) {
  delete conv;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int pad_h, int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t) {
  CUDA_HOST_DNN_BEGIN();
  if (u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1 || pad_h < 0 || pad_w < 0) return CUDNN_STATUS_BAD_PARAM;
  conv->pad = {pad_h, pad_w};
  conv->stride = {u, v};
  conv->dilation = {dilation_h, dilation_w};
  conv->mode = mode;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups) {
  conv->groups = groups;
  return groups > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t w, int* n, int* c, int* h, int* v) {
  *n = x->size[0];
  *c = w->size[0];
  *h = output_size(x->size[2], w->size[2], conv->pad[0], conv->stride[0], conv->dilation[0]);
  *v = output_size(x->size[3], w->size[3], conv->pad[1], conv->stride[1], conv->dilation[1]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
                                                     const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, const int wanted,
                                                     int* found, cudnnConvolutionFwdAlgoPerf_t* results) {
  return list(kForward, wanted, found, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
                                                          const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
                                                          const int wanted, int* found, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return list(kData, wanted, found, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
                                                            const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t,
                                                            const int wanted, int* found, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return list(kFilter, wanted, found, results);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
                                                      const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return size(kForward, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
                                                           const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return size(kData, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
                                                             const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return size(kFilter, algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xd, const void* x,
                                      const cudnnFilterDescriptor_t wd, const void* w, const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes, const void* beta,
                                      const cudnnTensorDescriptor_t yd, void* y) {
  CUDA_HOST_DNN_BEGIN();
  return submit(handle, __func__, {*xd, x}, {*wd, w}, {*yd, y}, *conv, Result::Y, alpha, beta, workspace, bytes, find(kForward, algorithm));
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, const cudnnFilterDescriptor_t wd, const void* w,
                                           const cudnnTensorDescriptor_t dyd, const void* dy, const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dxd, void* dx) {
  CUDA_HOST_DNN_BEGIN();
  return submit(handle, __func__, {*dxd, dx}, {*wd, w}, {*dyd, dy}, *conv, Result::X, alpha, beta, workspace, bytes,
                find(kData, algorithm));
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xd, const void* x,
                                             const cudnnTensorDescriptor_t dyd, const void* dy, const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dwd, void* dw) {
  CUDA_HOST_DNN_BEGIN();
  return submit(handle, __func__, {*xd, x}, {*dwd, dw}, {*dyd, dy}, *conv, Result::W, alpha, beta, workspace, bytes,
                find(kFilter, algorithm));
}
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t dyd, const void* dy,
                                           const void* beta, const cudnnTensorDescriptor_t dbd, void* db) {
  CUDA_HOST_DNN_BEGIN();
  if (!reachable(*dyd, dy) || !reachable(*dbd, db) || dbd->count() != static_cast<std::size_t>(dyd->size[1])) return CUDNN_STATUS_BAD_PARAM;
  const Tensor from = *dyd, to = *dbd;
  const double a = scale(alpha, from), b = scale(beta, from);
  return enqueue(handle, __func__, [=] {
    const auto values = from.read(dy);
    std::vector<double> sum(to.count(), 0.0);
    const auto plane = static_cast<std::size_t>(from.size[2] * from.size[3]);
    for (std::size_t i = 0; i < values.size(); ++i) sum[i / plane % sum.size()] += values[i];
    to.write(db, sum, a, b);
  });
}
