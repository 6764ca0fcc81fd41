#include "base/stored_type.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"

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

template <typename T, typename Wide = double>
void decode_as(const void* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
    to[i] = static_cast<Wide>(value);
  }
}

template <typename Half>
bool encode_half(double value, void* to) {
  const Half half(value);
  std::memcpy(to, &half, 2);
  return !std::isinf(static_cast<float>(half));
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
    case StoredType::f16: return decode_as<Float16, float>(from, count, to);
    case StoredType::bf16: return decode_as<BFloat16, float>(from, count, to);
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
    case StoredType::f16: return encode_half<Float16>(value, to);
    case StoredType::bf16: return encode_half<BFloat16>(value, to);
    case StoredType::i8: return encode_integer<int8_t>(value, to);
    case StoredType::u8: return encode_integer<uint8_t>(value, to);
    case StoredType::i16: return encode_integer<int16_t>(value, to);
    case StoredType::u16: return encode_integer<uint16_t>(value, to);
    case StoredType::i32: return encode_integer<int32_t>(value, to);
  }
  unhandled(type);
}

}  // namespace zeroplan
