#include "base/stored_type.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

struct Row {
  int64_t bytes;
  std::string_view name, long_name;
};

// By the number of the type.
constexpr Row kRows[] = {{4, "f32", "float32"}, {8, "f64", "float64"}, {2, "f16", "float16"}, {2, "bf16", "bfloat16"}, {1, "i8", "int8"},
                         {1, "u8", "uint8"},    {2, "i16", "int16"},   {2, "u16", "uint16"},  {4, "i32", "int32"}};
static_assert(std::size(kRows) == std::size(kStoredTypes));

const Row& row(StoredType type) { return kRows[static_cast<size_t>(type)]; }

// IEEE 754 binary formats of 16 bits; what is below the normal numbers counts steps of the smallest.
struct Half {
  int fraction_bits, bias;
};
constexpr Half kFloat16 = {10, 15}, kBfloat16 = {7, 127};

double widen(Half form, uint16_t bits) {
  const int fraction = bits & ((1 << form.fraction_bits) - 1), exponent = (bits & 0x7fff) >> form.fraction_bits;
  const int largest = 0x7fff >> form.fraction_bits;
  double size = std::ldexp(fraction, 1 - form.bias - form.fraction_bits);
  if (exponent == largest)
    size = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (exponent > 0)
    size = std::ldexp(fraction + (1 << form.fraction_bits), exponent - form.bias - form.fraction_bits);
  return (bits & 0x8000) != 0 ? -size : size;
}

// Adding the rounded fraction carries into the exponent by itself.
uint16_t narrow(Half form, double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = (0x7fff >> form.fraction_bits) << form.fraction_bits;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1 << (form.fraction_bits - 1));
  const double size = std::abs(value);
  if (std::isinf(size)) return static_cast<uint16_t>(sign | infinity);
  if (size < std::ldexp(1, 1 - form.bias))
    return static_cast<uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(size, form.bias - 1 + form.fraction_bits))));
  const int exponent = std::ilogb(size);
  const auto steps = static_cast<int64_t>(std::nearbyint(std::ldexp(size, form.fraction_bits - exponent)));
  const int64_t bits = (static_cast<int64_t>(exponent + form.bias - 1) << form.fraction_bits) + steps;
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, infinity));
}

template <typename T>
void decode_as(const void* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
    to[i] = static_cast<double>(value);
  }
}

void decode_half(Half form, const void* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(from) + 2 * i, 2);
    to[i] = widen(form, bits);
  }
}

bool encode_half(Half form, double value, void* to) {
  const uint16_t bits = narrow(form, value);
  std::memcpy(to, &bits, 2);
  return !std::isinf(widen(form, bits));
}

bool encode_float(double value, void* to) {
  const auto bits = static_cast<float>(value);
  std::memcpy(to, &bits, 4);
  return !std::isinf(bits) || std::isinf(value);
}

template <typename T>
bool encode_integer(double value, void* to) {
  if (std::isnan(value)) return false;
  const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const auto bits = static_cast<T>(std::min(std::max(std::nearbyint(value), low), high));
  std::memcpy(to, &bits, sizeof bits);
  return true;
}

[[noreturn]] void unhandled(StoredType type) {
  throw std::logic_error(fmt::format("stored type {} is not handled here", static_cast<int>(type)));
}

}  // namespace

int64_t stored_bytes(StoredType type) { return row(type).bytes; }
bool is_floating(StoredType type) { return type <= StoredType::bf16; }
std::string_view stored_name(StoredType type) { return row(type).name; }
std::string_view stored_long_name(StoredType type) { return row(type).long_name; }

StoredType parse_stored_type(std::string_view name) {
  for (StoredType type : kStoredTypes)
    if (stored_name(type) == name) return type;
  throw Error(fmt::format("'{}' is no type that weights are stored as", name));
}

void decode_stored(StoredType type, const void* from, int64_t count, double* to) {
  switch (type) {
    case StoredType::f32: return decode_as<float>(from, count, to);
    case StoredType::f64: return decode_as<double>(from, count, to);
    case StoredType::f16: return decode_half(kFloat16, from, count, to);
    case StoredType::bf16: return decode_half(kBfloat16, from, count, to);
    case StoredType::i8: return decode_as<int8_t>(from, count, to);
    case StoredType::u8: return decode_as<uint8_t>(from, count, to);
    case StoredType::i16: return decode_as<int16_t>(from, count, to);
    case StoredType::u16: return decode_as<uint16_t>(from, count, to);
    case StoredType::i32: return decode_as<int32_t>(from, count, to);
  }
  unhandled(type);
}

bool encode_stored(StoredType type, double value, void* to) {
  switch (type) {
    case StoredType::f32: return encode_float(value, to);
    case StoredType::f64: std::memcpy(to, &value, sizeof value); return true;
    case StoredType::f16: return encode_half(kFloat16, value, to);
    case StoredType::bf16: return encode_half(kBfloat16, value, to);
    case StoredType::i8: return encode_integer<int8_t>(value, to);
    case StoredType::u8: return encode_integer<uint8_t>(value, to);
    case StoredType::i16: return encode_integer<int16_t>(value, to);
    case StoredType::u16: return encode_integer<uint16_t>(value, to);
    case StoredType::i32: return encode_integer<int32_t>(value, to);
  }
  unhandled(type);
}

}  // namespace zeroplan
