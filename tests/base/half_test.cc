// The 16-bit types as tensors hold them; stored_type_test judges every rounding of a double.
#include "base/half.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/host_tensor.h"

namespace zeroplan {
namespace {

// A float is a double too, so both conversions must agree: every 61st float, which meets all exponents and places of a fraction.
template <typename Half>
void expect_floats_round_like_doubles() {
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 61) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const Half half(value);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(static_cast<float>(half))) << bits;
    else
      ASSERT_EQ(half.bits, Half(static_cast<double>(value)).bits) << bits;
  }
}

TEST(Half, FloatsRoundLikeDoubles) {
  expect_floats_round_like_doubles<Float16>();
  expect_floats_round_like_doubles<BFloat16>();
}

TEST(Half, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 half;
    BFloat16 brain;
    half.bits = brain.bits = static_cast<uint16_t>(bits);
    const float a = static_cast<float>(half), b = static_cast<float>(brain);
    ASSERT_TRUE(std::isnan(a) ? std::isnan(static_cast<float>(Float16(a))) : Float16(a).bits == bits) << bits;
    ASSERT_TRUE(std::isnan(b) ? std::isnan(static_cast<float>(BFloat16(b))) : BFloat16(b).bits == bits) << bits;
  }
}

TEST(Half, EdgesOfTheRange) {
  EXPECT_EQ(Float16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Float16(std::ldexp(1.0f, -25)).bits, 0);
  EXPECT_EQ(Float16(std::nextafter(std::ldexp(1.0f, -25), 1.0f)).bits, 1);
  EXPECT_EQ(Float16(-1e-30f).bits, 0x8000);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(BFloat16(INFINITY).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::nan("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001)))));  // a payload that the upper half lacks
}

TEST(Half, TensorsRoundOnce) {
  HostTensor tensor(DType::f16, {2});
  tensor.set(0, 1 + std::ldexp(1, -11) + std::ldexp(1, -40));  // by way of float it would be a tie
  tensor.set(1, -0.0);
  EXPECT_EQ(tensor.as<Float16>()[0].bits, 0x3c01);
  EXPECT_EQ(tensor.as<Float16>()[1].bits, 0x8000);
  EXPECT_EQ(tensor.get(0), 1 + std::ldexp(1, -10));
  const HostTensor integers = HostTensor::of(DType::i32, {2}, std::vector<int>{257, -3}).cast(DType::bf16);
  EXPECT_EQ(integers.get(0), 256);
  EXPECT_EQ(integers.cast(DType::i64).to_ints(), (std::vector<int64_t>{256, -3}));
  EXPECT_EQ(HostTensor::of(DType::bf16, {1}, std::vector<double>{0.5}).cast(DType::boolean).get_int(0), 1);
}

}  // namespace
}  // namespace zeroplan
