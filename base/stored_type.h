#pragma once
// Element types that weights are stored as in a file. A run computes with f32 or f64 (dtype.h) whatever they are.
#include <cstdint>
#include <string_view>

namespace zeroplan {

// Plans store the numbers: new types come last.
enum class StoredType : uint8_t { f32, f64, f16, bf16, i8, u8, i16, u16, i32 };
inline constexpr StoredType kStoredTypes[] = {StoredType::f32, StoredType::f64, StoredType::f16, StoredType::bf16, StoredType::i8,
                                              StoredType::u8,  StoredType::i16, StoredType::u16, StoredType::i32};

int64_t stored_bytes(StoredType type);
bool is_floating(StoredType type);
std::string_view stored_name(StoredType type);        // as in texts of graphs and plans
std::string_view stored_long_name(StoredType type);   // as in messages: float16
StoredType parse_stored_type(std::string_view name);  // throws Error on an unknown name

// `count` elements, little-endian as in the file, as numbers.
void decode_stored(StoredType type, const void* from, int64_t count, double* to);
// The nearest number of the type, ties to even: integers saturate. False where a floating-point one would overflow to infinity, or an
// integer type is given what is no number.
bool encode_stored(StoredType type, double value, void* to);

}  // namespace zeroplan
