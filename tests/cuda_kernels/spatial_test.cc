// Batch statistics and pools of sizes that cross chunks and blocks.
#include <gtest/gtest.h>

#include "graph/ops/cuda_channel_chunks.h"
#include "tests/cuda_kernels/sized_case.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

using Ints = std::vector<int64_t>;

const Attributes kEpsilon = {{Attr::epsilon, 1e-3}};

void check_batch_norm(Shape shape, double low, double high) {
  const int64_t channels = shape[1];
  SCOPED_TRACE(to_string(shape));
  const TensorSpec x = real(shape, low, high), per_channel = real({channels}, 0.5, 2);
  check_on_device({"forward", OpKind::batch_norm, {x, per_channel, real({channels})}, kEpsilon});
  const double small = 1.0 / static_cast<double>(elements(shape) / channels);  // sums stay below 1, beside which rounding is judged
  check_on_device({"backward",
                   OpKind::batch_norm_grad,
                   {real(shape, -small, small), real(shape), per_channel, wide(real({channels})), wide(per_channel)},
                   kEpsilon});
}

TEST(CudaBatchNorm, ShapesAroundAChunk) {
  check_batch_norm({1, 1, 1}, -2, 2);
  check_batch_norm({5, 3, 17}, -2, 2);
  check_batch_norm({2, 3, 64, 32}, -2, 2);  // exactly one chunk
  check_batch_norm({3, 2, 61, 47}, -2, 2);  // three chunks, the last one not full
  check_batch_norm({2, 40, 8, 8}, -2, 2);
  check_batch_norm({300, 33}, -2, 2);  // across channels
  check_batch_norm({1000, 3, 1, 1}, -2, 2);
  check_batch_norm({130, 70, 2}, -2, 2);
}

// A variance of 1/12 around 1000: differences of squares would lose it in float.
TEST(CudaBatchNorm, FarFromZero) {
  const OpCase far = {"far", OpKind::batch_norm, {real({3, 2, 61, 47}, 1000, 1001), real({2}), real({2})}, kEpsilon};
  const CaseGraph built = build_case(far, DType::f32, 3);
  const HostTensor got = device_outputs(built)[2], want = reference_outputs(built)[2];
  for (int64_t c = 0; c < 2; ++c) EXPECT_NEAR(got.get(c), want.get(c), 1e-6);
}

Attributes windows(Ints kernel, Ints strides, Ints pads, Ints dilations) {
  return {{Attr::kernel_shape, std::move(kernel)},
          {Attr::strides, std::move(strides)},
          {Attr::pads, std::move(pads)},
          {Attr::dilations, std::move(dilations)}};
}

void check_pools(const Shape& x, const Shape& y, const Attributes& attributes) {
  SCOPED_TRACE(to_string(x));
  check_on_device({"max", OpKind::max_pool, {real(x)}, attributes});
  for (const int64_t all : {0, 1}) {
    Attributes average = attributes;
    average.set(Attr::count_include_pad, all);
    check_on_device({"average", OpKind::average_pool, {real(x)}, average});
    average.set(Attr::shape, x);
    check_on_device({"gradient", OpKind::average_pool_grad, {real(y)}, average});
  }
}

TEST(CudaPool, EveryRankAndWindow) {
  check_pools({3, 5, 700}, {3, 5, 350}, windows({3}, {2}, {1, 0}, {1}));
  check_pools({2, 9, 33, 31}, {2, 9, 17, 16}, windows({3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}));
  check_pools({2, 3, 30, 30}, {2, 3, 12, 9}, windows({4, 3}, {3, 3}, {4, 2, 6, 1}, {2, 3}));
  check_pools({2, 3, 60, 50}, {2, 3, 1, 1}, windows({60, 50}, {1, 1}, {0, 0, 0, 0}, {1, 1}));
  check_pools({1, 2, 9, 8, 7}, {1, 2, 4, 8, 3}, windows({3, 2, 3}, {2, 1, 2}, {0, 1, 0, 0, 0, 0}, {1, 1, 1}));
  check_pools({0, 2, 9}, {0, 2, 7}, windows({3}, {1}, {0, 0}, {1}));
}

TEST(CudaPool, AllAreTheLowestNumber) {
  const double low = -std::numeric_limits<double>::infinity();
  check_on_device({"low", OpKind::max_pool, {reals({1, 1, 5}, {low, low, low, 1, low})}, windows({2}, {1}, {1, 0}, {1})});
}

}  // namespace
}  // namespace zeroplan
