#include "base/host_tensor.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"

namespace zeroplan {
namespace {

TEST(HostTensor, StartsAsZeros) {
  for (DType dtype : kDTypes) {
    const HostTensor tensor(dtype, {2, 3});
    EXPECT_EQ(tensor.bytes(), 6 * dtype_bytes(dtype));
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor.get(i), 0);
  }
  EXPECT_EQ(HostTensor(DType::f32, {0, 4}).count(), 0);
  EXPECT_EQ(HostTensor(DType::f32, {}).count(), 1);
  EXPECT_THROW(HostTensor(DType::f32, {-1}), Error);
  EXPECT_THROW(HostTensor(DType::f64, {int64_t{1} << 61}), Error);
}

TEST(HostTensor, ConvertsValuesOfEveryType) {
  for (DType dtype : kDTypes) {
    const HostTensor tensor = HostTensor::of(dtype, {2}, std::vector<int>{0, 1});
    EXPECT_EQ(tensor.get(0), 0);
    EXPECT_EQ(tensor.get(1), 1);
  }
  EXPECT_THROW(HostTensor::of(DType::f32, {3}, std::vector<int>{1}), std::out_of_range);
}

TEST(HostTensor, IntegersAreExact) {
  const int64_t value = (int64_t{1} << 60) + 1;
  HostTensor tensor(DType::i64, {1});
  tensor.set_int(0, value);
  EXPECT_EQ(tensor.get_int(0), value);
  EXPECT_EQ(tensor.to_ints(), (std::vector<int64_t>{value}));
  EXPECT_THROW(HostTensor(DType::f32, {1}).get_int(0), std::logic_error);
}

TEST(HostTensor, FloatToIntegerTruncatesAndSaturates) {
  const auto source = HostTensor::of(DType::f64, {5}, std::vector<double>{2.9, -2.9, 1e30, -1e30, std::nan("")});
  EXPECT_EQ(source.cast(DType::i32).to_ints(), (std::vector<int64_t>{2, -2, 2147483647, -2147483648LL, 0}));
  EXPECT_EQ(source.cast(DType::u8).to_ints(), (std::vector<int64_t>{2, 0, 255, 0, 0}));
  EXPECT_EQ(source.cast(DType::i64).get_int(2), std::numeric_limits<int64_t>::max());
}

TEST(HostTensor, BooleansAreZeroOrOne) {
  const HostTensor flags = HostTensor::of(DType::f32, {3}, std::vector<float>{0, 0.5f, -7}).cast(DType::boolean);
  EXPECT_EQ(flags.to_ints(), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(static_cast<int>(flags.data()[2]), 1);
  HostTensor raw(DType::boolean, {1});
  raw.mutable_data()[0] = std::byte{4};
  EXPECT_EQ(raw.get_int(0), 1);
  EXPECT_EQ(raw.cast(DType::f32).get(0), 1);
}

TEST(HostTensor, CastRoundsOnce) {
  HostTensor wide(DType::i64, {1});
  wide.set_int(0, (int64_t{1} << 53) + (int64_t{1} << 29) + 1);  // by way of double it would round to even
  EXPECT_EQ(wide.cast(DType::f32).get(0), std::ldexp(1.0, 53) + std::ldexp(1.0, 30));
}

TEST(HostTensor, CopiesShareUntilOneIsWritten) {
  HostTensor first = HostTensor::of(DType::f32, {2}, std::vector<float>{1, 2});
  HostTensor second = first;
  EXPECT_EQ(first.data(), second.data());
  second.set(0, 5);
  EXPECT_EQ(first.get(0), 1);
  EXPECT_EQ(second.get(0), 5);
  const HostTensor third = first;
  first.view().as<float>()[1] = 9;
  EXPECT_EQ(third.get(1), 2);
}

TEST(HostTensor, ReshapeKeepsTheBytes) {
  const HostTensor tensor = HostTensor::of(DType::i32, {2, 3}, std::vector<int>{1, 2, 3, 4, 5, 6});
  const HostTensor flat = tensor.reshaped({6});
  EXPECT_EQ(flat.shape(), (Shape{6}));
  EXPECT_EQ(flat.data(), tensor.data());
  EXPECT_THROW(tensor.reshaped({5}), Error);
}

TEST(HostTensor, EqualityIsByTypeShapeAndBytes) {
  const HostTensor a = HostTensor::of(DType::f32, {2}, std::vector<float>{0.0f, 1});
  EXPECT_TRUE(a == HostTensor::of(DType::f32, {2}, std::vector<float>{0.0f, 1}));
  EXPECT_FALSE(a == HostTensor::of(DType::f32, {2}, std::vector<float>{-0.0f, 1}));
  EXPECT_FALSE(a == a.reshaped({2, 1}));
  EXPECT_FALSE(a == a.cast(DType::f64));
}

TEST(HostTensor, RefusesIndicesOutside) {
  HostTensor tensor(DType::f32, {2});
  EXPECT_THROW(tensor.get(2), std::logic_error);
  EXPECT_THROW(tensor.set(-1, 0), std::logic_error);
}

}  // namespace
}  // namespace zeroplan
