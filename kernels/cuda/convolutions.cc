#include "kernels/cuda/convolutions.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the library's newer interface for convolutions builds on runtime compilation

namespace zeroplan {

namespace {

cudnnDataType_t library_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f64: return CUDNN_DATA_DOUBLE;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: unhandled_dtype(dtype);
  }
}

constexpr int kMostAlgorithms = 16;

}  // namespace

struct Convolutions::Prepared {
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  int algorithm = -1;  // of the pass; -1: none

  explicit Prepared(const ConvProblem& p);
  Prepared(const Prepared&) = delete;
  ~Prepared() {
    if (conv != nullptr) cudnnDestroyConvolutionDescriptor(conv);
    if (w != nullptr) cudnnDestroyFilterDescriptor(w);
    if (y != nullptr) cudnnDestroyTensorDescriptor(y);
    if (x != nullptr) cudnnDestroyTensorDescriptor(x);
  }

  // list(most, &found, results) asks for algorithms, the fastest first; workspace(algorithm, &bytes) for what one needs.
  template <typename Result, typename List, typename Workspace>
  void choose(const ConvProblem& p, const List& list, const Workspace& workspace) {
    Result results[kMostAlgorithms];
    int found = 0;
    if (list(kMostAlgorithms, &found, results) != CUDNN_STATUS_SUCCESS) return;
    for (int i = 0; i < found && algorithm < 0; ++i) {
      if (results[i].status != CUDNN_STATUS_SUCCESS || results[i].determinism != CUDNN_DETERMINISTIC) continue;
      if (is_half(p.dtype)) check_cudnn(cudnnSetConvolutionMathType(conv, results[i].mathType), "cudnnSetConvolutionMathType");
      size_t bytes = 0;
      if (workspace(results[i].algo, &bytes) != CUDNN_STATUS_SUCCESS || static_cast<int64_t>(bytes) > p.workspace_bytes) continue;
      algorithm = static_cast<int>(results[i].algo);
    }
  }
  void choose(cudnnHandle_t handle, const ConvProblem& p);
};

Convolutions::Prepared::Prepared(const ConvProblem& p) {
  const cudnnDataType_t type = library_type(p.dtype);
  const auto &h = p.axis[0], &v = p.axis[1];
  check_cudnn(cudnnCreateTensorDescriptor(&x), "cudnnCreateTensorDescriptor");
  check_cudnn(cudnnCreateTensorDescriptor(&y), "cudnnCreateTensorDescriptor");
  check_cudnn(cudnnCreateFilterDescriptor(&w), "cudnnCreateFilterDescriptor");
  check_cudnn(cudnnCreateConvolutionDescriptor(&conv), "cudnnCreateConvolutionDescriptor");
  check_cudnn(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, type, p.batch, p.groups * p.in_channels, h.in, v.in),
              "cudnnSetTensor4dDescriptor");
  check_cudnn(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, type, p.batch, p.groups * p.out_channels, h.out, v.out),
              "cudnnSetTensor4dDescriptor");
  check_cudnn(cudnnSetFilter4dDescriptor(w, type, CUDNN_TENSOR_NCHW, p.groups * p.out_channels, p.in_channels, h.kernel, v.kernel),
              "cudnnSetFilter4dDescriptor");
  check_cudnn(cudnnSetConvolution2dDescriptor(conv, h.pad, v.pad, h.stride, v.stride, h.dilation, v.dilation, CUDNN_CROSS_CORRELATION,
                                              p.dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
              "cudnnSetConvolution2dDescriptor");
  check_cudnn(cudnnSetConvolutionGroupCount(conv, p.groups), "cudnnSetConvolutionGroupCount");
  // Without this float32 would be rounded to 10 bits of fraction on its way into the tensor cores.
  const cudnnMathType_t math = is_half(p.dtype) ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
  check_cudnn(cudnnSetConvolutionMathType(conv, math), "cudnnSetConvolutionMathType");
}

// cudnnGetConvolution…Algorithm_v7: by the problem, without running any.
void Convolutions::Prepared::choose(cudnnHandle_t handle, const ConvProblem& p) {
  if (p.pass == OpKind::conv)
    choose<cudnnConvolutionFwdAlgoPerf_t>(
        p, [&](auto... to) { return cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, conv, y, to...); },
        [&](auto... to) { return cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, conv, y, to...); });
  else if (p.pass == OpKind::conv_grad_input)
    choose<cudnnConvolutionBwdDataAlgoPerf_t>(
        p, [&](auto... to) { return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, y, conv, x, to...); },
        [&](auto... to) { return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w, y, conv, x, to...); });
  else
    choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
        p, [&](auto... to) { return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, conv, w, to...); },
        [&](auto... to) { return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x, y, conv, w, to...); });
}

Convolutions::Convolutions(cudnnHandle_t handle) : handle_(handle) {}
Convolutions::~Convolutions() = default;

Convolutions::Prepared& Convolutions::prepared(const ConvProblem& p) {
  std::unique_ptr<Prepared>& made = prepared_[p];
  if (!made) {
    auto prepared = std::make_unique<Prepared>(p);
    prepared->choose(handle_, p);
    made = std::move(prepared);
  }
  return *made;
}

bool Convolutions::takes(const ConvProblem& p) { return prepared(p).algorithm >= 0; }

bool Convolutions::run(const ConvProblem& p, const void* x, const void* w, const void* y, void* workspace) {
  const Prepared* made = &prepared(p);
  if (made->algorithm < 0) return false;
  const double one = 1, zero = 0;
  const float one_float = 1, zero_float = 0;
  const bool doubles = p.dtype == DType::f64;
  const void *alpha = doubles ? static_cast<const void*>(&one) : &one_float,
             *beta = doubles ? static_cast<const void*>(&zero) : &zero_float;
  const auto bytes = static_cast<size_t>(p.workspace_bytes);
  if (p.pass == OpKind::conv)
    check_cudnn(
        cudnnConvolutionForward(handle_, alpha, made->x, x, made->w, w, made->conv, static_cast<cudnnConvolutionFwdAlgo_t>(made->algorithm),
                                workspace, bytes, beta, made->y, const_cast<void*>(y)),
        "cudnnConvolutionForward");
  else if (p.pass == OpKind::conv_grad_input)
    check_cudnn(cudnnConvolutionBackwardData(handle_, alpha, made->w, w, made->y, y, made->conv,
                                             static_cast<cudnnConvolutionBwdDataAlgo_t>(made->algorithm), workspace, bytes, beta, made->x,
                                             const_cast<void*>(x)),
                "cudnnConvolutionBackwardData");
  else
    check_cudnn(cudnnConvolutionBackwardFilter(handle_, alpha, made->x, x, made->y, y, made->conv,
                                               static_cast<cudnnConvolutionBwdFilterAlgo_t>(made->algorithm), workspace, bytes, beta,
                                               made->w, const_cast<void*>(w)),
                "cudnnConvolutionBackwardFilter");
  return true;
}

}  // namespace zeroplan
