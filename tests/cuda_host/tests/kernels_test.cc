// The six example kernels against loops, for several schedules.
#include "kernels.h"

#include <cmath>
#include <cstring>

#include "device_buffer.h"

namespace {

struct Schedule {
  std::uint64_t seed;
  cuda_host::ThreadOrder order;
  int workers;
};

class KernelsTest : public testing::TestWithParam<Schedule> {
 protected:
  void SetUp() override {
    cuda_host::reset();
    cuda_host::settings().seed = GetParam().seed;
    cuda_host::settings().thread_order = GetParam().order;
    cuda_host::settings().block_workers = GetParam().workers;
  }
  void TearDown() override { EXPECT_EQ(cuda_host::reset(), 0U); }
};

TEST_P(KernelsTest, VectorAdd) {
  const auto a = random_floats(1000, 1), b = random_floats(1000, 2);
  const DeviceBuffer<float> da(a), db(b), sum(1000);
  ASSERT_EQ(example::vector_add(nullptr, da.get(), db.get(), sum.get(), 1000), cudaSuccess);
  const auto result = sum.values();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(result[i], a[i] + b[i]);
}

TEST_P(KernelsTest, BlockSum) {
  const auto x = random_floats(5000);
  const DeviceBuffer<float> dx(x), total(std::vector<float>{0.0F});
  ASSERT_EQ(example::block_sum(nullptr, dx.get(), total.get(), 5000), cudaSuccess);
  double expected = 0;
  for (const float v : x) expected += v;
  EXPECT_NEAR(total.values()[0], expected, 1e-3);
}

TEST_P(KernelsTest, Softmax) {
  constexpr int rows = 7, columns = 77;
  const auto x = random_floats(rows * columns);
  const DeviceBuffer<float> dx(x), dy(x.size());
  ASSERT_EQ(example::softmax_rows(nullptr, dx.get(), dy.get(), rows, columns), cudaSuccess);
  const auto y = dy.values();
  for (int r = 0; r < rows; ++r) {
    double total = 0;
    for (int c = 0; c < columns; ++c) total += std::exp(double{x[static_cast<std::size_t>(r * columns + c)]});
    for (int c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(r * columns + c);
      EXPECT_NEAR(y[i], std::exp(double{x[i]}) / total, 1e-6);
    }
  }
}

TEST_P(KernelsTest, Matmul) {
  constexpr int m = 37, n = 29, k = 45;
  const auto a = random_floats(m * k, 1), b = random_floats(k * n, 2);
  const DeviceBuffer<float> da(a), db(b), dc(m * n);
  ASSERT_EQ(example::matmul(nullptr, da.get(), db.get(), dc.get(), m, n, k), cudaSuccess);
  const auto c = dc.values();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double expected = 0;
      for (int l = 0; l < k; ++l) {
        expected += double{a[static_cast<std::size_t>(i * k + l)]} * b[static_cast<std::size_t>(l * n + j)];
      }
      EXPECT_NEAR(c[static_cast<std::size_t>(i * n + j)], expected, 1e-5);
    }
  }
}

TEST_P(KernelsTest, Histogram) {
  std::vector<std::uint8_t> x(10000);
  std::vector<unsigned> expected(256, 0);
  for (std::size_t i = 0; i < x.size(); ++i) ++expected[x[i] = static_cast<std::uint8_t>(i * i % 251)];
  const DeviceBuffer<std::uint8_t> dx(x);
  const DeviceBuffer<unsigned> bins(std::vector<unsigned>(256, 0));
  ASSERT_EQ(example::histogram(nullptr, dx.get(), bins.get(), 10000), cudaSuccess);
  EXPECT_EQ(bins.values(), expected);
}

TEST_P(KernelsTest, Bf16Cast) {
  const auto x = random_floats(1027);
  const DeviceBuffer<float> dx(x);
  const DeviceBuffer<std::uint16_t> dy(x.size());
  ASSERT_EQ(example::to_bf16(nullptr, dx.get(), dy.get(), static_cast<int>(x.size())), cudaSuccess);
  const auto y = dy.values();
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x[i], 4);
    bits += 0x7FFFU + (bits >> 16 & 1U);  // round to nearest even
    EXPECT_EQ(y[i], bits >> 16);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, KernelsTest,
                         testing::Values(Schedule{1, cuda_host::ThreadOrder::Ascending, 1},
                                         Schedule{1, cuda_host::ThreadOrder::Descending, 1},
                                         Schedule{1, cuda_host::ThreadOrder::Shuffled, 1}, Schedule{2, cuda_host::ThreadOrder::Shuffled, 1},
                                         Schedule{3, cuda_host::ThreadOrder::Shuffled, 2}));

}  // namespace
