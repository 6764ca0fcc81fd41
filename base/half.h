#pragma once
// The floating-point types of 16 bits: storage alone, arithmetic is float's. Conversions round once, to the nearest, ties to even; what
// is too large becomes an infinity, not-a-number stays one. Without branches, so that loops over them are vectorised.
#include <bit>
#include <cmath>
#include <cstdint>

namespace zeroplan {

// IEEE 754 binary16.
[[gnu::always_inline]] inline uint16_t float16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  const uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;  // the exponent moved; a carry moves on into it
  // Below the normal numbers: 0.5 has the smallest step of a float16 as its last bit, so the addition rounds.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
  const uint32_t finite = size < 0x38800000 ? small : size < 0x47800000 ? normal : 0x7c00;
  const uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);
  return static_cast<uint16_t>(sign | (size > 0x7f800000 ? nan : finite));
}

[[gnu::always_inline]] inline float float16_value(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, size = uint32_t{bits & 0x7fffu} << 13;
  const float small = std::bit_cast<float>(size + 0x38800000) - 0x1p-14f;  // counts steps of 2^-24 up from 2^-14
  const uint32_t normal = size + (size < 0x0f800000 ? 0x38000000 : 0x70000000);
  return std::bit_cast<float>(sign | (size < 0x00800000 ? std::bit_cast<uint32_t>(small) : normal));
}

// The upper half of a float.
[[gnu::always_inline]] inline uint16_t bfloat16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

[[gnu::always_inline]] inline float bfloat16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Rounded to odd: a second rounding, to a type of two bits less, gives what one rounding gives.
[[gnu::always_inline]] inline float odd_float(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || nearest == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;  // towards zero; from infinity to the largest number
  return std::bit_cast<float>(bits | 1);
}

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  [[gnu::always_inline]] explicit Float16(float value) : bits(float16_bits(value)) {}
  [[gnu::always_inline]] explicit Float16(double value) : bits(float16_bits(odd_float(value))) {}
  [[gnu::always_inline]] explicit operator float() const { return float16_value(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  [[gnu::always_inline]] explicit BFloat16(float value) : bits(bfloat16_bits(value)) {}
  [[gnu::always_inline]] explicit BFloat16(double value) : bits(bfloat16_bits(odd_float(value))) {}
  [[gnu::always_inline]] explicit operator float() const { return bfloat16_value(bits); }
};

static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);

}  // namespace zeroplan
