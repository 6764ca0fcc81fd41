// Numbers in the 16-bit formats and in integers, as files store weights.
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/stored_type.h"

namespace zeroplan {
namespace {

uint16_t half_bits(StoredType type, double value) {
  uint16_t bits = 0xdead;
  EXPECT_TRUE(encode_stored(type, value, &bits)) << value;
  return bits;
}

double value_of(StoredType type, uint16_t bits) {
  double value = 0;
  decode_stored(type, &bits, 1, &value);
  return value;
}

// Bits as NumPy and ml_dtypes give them.
TEST(StoredType, KnownBits) {
  const StoredType half = StoredType::f16, brain = StoredType::bf16;
  EXPECT_EQ(half_bits(half, 1.0), 0x3c00);
  EXPECT_EQ(half_bits(half, -2.0), 0xc000);
  EXPECT_EQ(half_bits(half, 1.0 / 3), 0x3555);
  EXPECT_EQ(half_bits(half, 0.1), 0x2e66);
  EXPECT_EQ(half_bits(half, 65504), 0x7bff);
  EXPECT_EQ(half_bits(half, 65519.99), 0x7bff);
  EXPECT_EQ(half_bits(half, std::ldexp(1, -24)), 0x0001);
  EXPECT_EQ(half_bits(half, std::ldexp(1, -25)), 0x0000);  // halfway: to even
  EXPECT_EQ(half_bits(half, std::ldexp(3, -25)), 0x0002);  // halfway: to even
  EXPECT_EQ(half_bits(half, std::ldexp(1, -14)), 0x0400);
  EXPECT_EQ(half_bits(half, -0.0), 0x8000);
  EXPECT_EQ(half_bits(half, 1 + std::ldexp(1, -11)), 0x3c00);
  EXPECT_EQ(half_bits(half, 1 + std::ldexp(1, -11) + std::ldexp(1, -40)), 0x3c01);  // rounded once, not over float
  EXPECT_EQ(half_bits(brain, 1.0), 0x3f80);
  EXPECT_EQ(half_bits(brain, 3.14159274), 0x4049);
  EXPECT_EQ(half_bits(brain, 1 + std::ldexp(1, -8)), 0x3f80);
  EXPECT_EQ(half_bits(brain, 1 + 3 * std::ldexp(1, -8)), 0x3f82);
  EXPECT_EQ(value_of(half, 0x7bff), 65504);
  EXPECT_EQ(value_of(half, 0x03ff), 1023 * std::ldexp(1, -24));
  EXPECT_EQ(value_of(half, 0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value_of(half, 0x7e01)));
}

// bfloat16 is the upper half of a float; a float16 is moved to a float's places.
TEST(StoredType, EveryBitPatternHasItsValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto check_equal = [&](StoredType type, uint32_t wide) {
      float expected;
      std::memcpy(&expected, &wide, 4);
      const double got = value_of(type, static_cast<uint16_t>(bits));
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(got)) << bits;
      else
        EXPECT_EQ(got, expected) << bits;
    };
    check_equal(StoredType::bf16, bits << 16);
    const uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent > 0) check_equal(StoredType::f16, sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
  }
}

// Between neighbours the nearer one, and in the middle the even one.
TEST(StoredType, RoundsToTheNearestEven) {
  for (const StoredType type : {StoredType::f16, StoredType::bf16}) {
    const uint32_t infinity = type == StoredType::f16 ? 0x7c00 : 0x7f80;
    for (uint32_t bits = 0; bits + 1 < infinity; ++bits)
      for (const uint32_t sign : {0u, 0x8000u}) {
        const auto low = static_cast<uint16_t>(bits | sign), high = static_cast<uint16_t>((bits + 1) | sign);
        const double a = value_of(type, low), b = value_of(type, high), middle = (a + b) / 2;
        ASSERT_EQ(half_bits(type, a), low);
        ASSERT_EQ(half_bits(type, middle), bits % 2 == 0 ? low : high) << bits;
        ASSERT_EQ(half_bits(type, std::nextafter(middle, a)), low) << bits;
        ASSERT_EQ(half_bits(type, std::nextafter(middle, b)), high) << bits;
      }
  }
}

TEST(StoredType, WhatDoesNotFitIsNotStored) {
  char out[8];
  EXPECT_FALSE(encode_stored(StoredType::f16, 65520, out));
  EXPECT_FALSE(encode_stored(StoredType::f16, -1e9, out));
  EXPECT_FALSE(encode_stored(StoredType::f16, std::numeric_limits<double>::infinity(), out));
  EXPECT_FALSE(encode_stored(StoredType::bf16, 3.4e38, out));
  EXPECT_TRUE(encode_stored(StoredType::bf16, 3.38e38, out));
  EXPECT_FALSE(encode_stored(StoredType::f32, 1e39, out));
  EXPECT_TRUE(encode_stored(StoredType::f32, std::numeric_limits<double>::infinity(), out));  // as it was
  EXPECT_TRUE(encode_stored(StoredType::f16, NAN, out));
  EXPECT_FALSE(encode_stored(StoredType::i8, NAN, out));
}

TEST(StoredType, IntegersRoundAndSaturate) {
  const auto as_int8 = [](double value) {
    int8_t out = 0;
    EXPECT_TRUE(encode_stored(StoredType::i8, value, &out));
    return static_cast<int>(out);
  };
  EXPECT_EQ(as_int8(2.5), 2);
  EXPECT_EQ(as_int8(3.5), 4);
  EXPECT_EQ(as_int8(-2.5), -2);
  EXPECT_EQ(as_int8(127.6), 127);
  EXPECT_EQ(as_int8(-1e30), -128);
  uint16_t wide = 0;
  EXPECT_TRUE(encode_stored(StoredType::u16, 1e9, &wide));
  EXPECT_EQ(wide, 65535);
  uint8_t none = 7;
  EXPECT_TRUE(encode_stored(StoredType::u8, -3, &none));
  EXPECT_EQ(none, 0);
}

TEST(StoredType, NamesReadBack) {
  for (const StoredType type : kStoredTypes) EXPECT_EQ(parse_stored_type(stored_name(type)), type);
  EXPECT_THROW(parse_stored_type("f8"), Error);
  EXPECT_EQ(stored_long_name(StoredType::bf16), "bfloat16");
}

}  // namespace
}  // namespace zeroplan
