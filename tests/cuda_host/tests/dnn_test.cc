// The cuDNN subset: forward against a small independent loop, the backward
// passes as adjoints of the forward one.
#include <cudnn.h>

#include <numeric>

#include "device_buffer.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

double inner(const std::vector<float>& a, const std::vector<float>& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

class DnnTest : public CudaHostTest {
 protected:
  void SetUp() override {
    CudaHostTest::SetUp();
    cudnnCreate(&handle);
    for (auto* t : {&xd, &yd}) cudnnCreateTensorDescriptor(t);
    cudnnCreateFilterDescriptor(&wd);
    cudnnCreateConvolutionDescriptor(&conv);
    cudnnCreatePoolingDescriptor(&pool);
  }
  void TearDown() override {
    for (auto t : {xd, yd}) cudnnDestroyTensorDescriptor(t);
    cudnnDestroyFilterDescriptor(wd);
    cudnnDestroyConvolutionDescriptor(conv);
    cudnnDestroyPoolingDescriptor(pool);
    cudnnDestroy(handle);
    CudaHostTest::TearDown();
  }
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t xd, yd;
  cudnnFilterDescriptor_t wd;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  const float one = 1, zero = 0;
};

TEST_F(DnnTest, ConvolutionForwardMatchesALoop) {
  // One image, one channel, 3x3 filter, pad 1: the centre is the plain sum.
  cudnnSetTensor4dDescriptor(xd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4, 4);
  cudnnSetFilter4dDescriptor(wd, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 3, 3);
  cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  cudnnSetTensor4dDescriptor(yd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4, 4);
  const auto x = random_floats(16, 1), w = random_floats(9, 2);
  const DeviceBuffer<float> dx(x), dw(w), dy(16);
  ASSERT_EQ(cudnnConvolutionForward(handle, &one, xd, dx.get(), wd, dw.get(), conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                    &zero, yd, dy.get()),
            CUDNN_STATUS_SUCCESS);
  const auto y = dy.values();
  for (int p = 0; p < 4; ++p) {
    for (int q = 0; q < 4; ++q) {
      double sum = 0;
      for (int i = std::max(0, p - 1); i <= std::min(3, p + 1); ++i) {
        for (int j = std::max(0, q - 1); j <= std::min(3, q + 1); ++j) {
          sum += x[static_cast<std::size_t>(i * 4 + j)] * w[static_cast<std::size_t>((i - p + 1) * 3 + j - q + 1)];
        }
      }
      EXPECT_NEAR(y[static_cast<std::size_t>(p * 4 + q)], sum, 1e-5);
    }
  }
}

TEST_F(DnnTest, ConvolutionBackwardIsTheAdjoint) {
  cudnnSetTensor4dDescriptor(xd, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 4, 7, 6);
  cudnnSetFilter4dDescriptor(wd, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 6, 2, 3, 2);
  cudnnSetConvolution2dDescriptor(conv, 1, 0, 2, 1, 1, 2, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  cudnnSetConvolutionGroupCount(conv, 2);
  int n, c, h, v;
  cudnnGetConvolution2dForwardOutputDim(conv, xd, wd, &n, &c, &h, &v);
  cudnnSetTensor4dDescriptor(yd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, v);
  const auto count = static_cast<std::size_t>(n * c * h * v);
  const auto x = random_floats(2 * 4 * 7 * 6, 1), w = random_floats(6 * 2 * 3 * 2, 2), g = random_floats(count, 3);
  const DeviceBuffer<float> dx(x), dw(w), dg(g), y(count), gx(x.size()), gw(w.size());
  ASSERT_EQ(cudnnConvolutionForward(handle, &one, xd, dx.get(), wd, dw.get(), conv, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0, &zero, yd,
                                    y.get()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnConvolutionBackwardData(handle, &one, wd, dw.get(), yd, dg.get(), conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, nullptr, 0,
                                         &zero, xd, gx.get()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnConvolutionBackwardFilter(handle, &one, xd, dx.get(), yd, dg.get(), conv, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, nullptr, 0,
                                           &zero, wd, gw.get()),
            CUDNN_STATUS_SUCCESS);
  const double forward = inner(y.values(), g);
  EXPECT_GT(std::abs(forward), 1e-2);
  EXPECT_NEAR(inner(x, gx.values()), forward, 1e-4);
  EXPECT_NEAR(inner(w, gw.values()), forward, 1e-4);
  cudnnSetTensor4dDescriptor(yd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, v + 1);
  EXPECT_EQ(cudnnConvolutionForward(handle, &one, xd, dx.get(), wd, dw.get(), conv, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0, &zero, yd,
                                    y.get()),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_F(DnnTest, Pooling) {
  cudnnSetTensor4dDescriptor(xd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4, 4);
  cudnnSetTensor4dDescriptor(yd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2);
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), 0.0F);
  const DeviceBuffer<float> dx(x), y(4), g(std::vector<float>{1, 2, 3, 4}), gx(16);
  cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2);
  ASSERT_EQ(cudnnPoolingForward(handle, pool, &one, xd, dx.get(), &zero, yd, y.get()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.values(), (std::vector<float>{5, 7, 13, 15}));
  ASSERT_EQ(cudnnPoolingBackward(handle, pool, &one, yd, y.get(), yd, g.get(), xd, dx.get(), &zero, xd, gx.get()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(gx.values(), (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}));
  cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 2, 2);
  ASSERT_EQ(cudnnPoolingForward(handle, pool, &one, xd, dx.get(), &zero, yd, y.get()), CUDNN_STATUS_SUCCESS);
  EXPECT_NEAR(y.values()[0], (0 + 1 + 4 + 5) / 9.0, 1e-6);
  ASSERT_EQ(cudnnPoolingBackward(handle, pool, &one, yd, y.get(), yd, g.get(), xd, dx.get(), &zero, xd, gx.get()), CUDNN_STATUS_SUCCESS);
  EXPECT_NEAR(inner(gx.values(), x), inner(y.values(), {1, 2, 3, 4}), 1e-4);
}

}  // namespace
