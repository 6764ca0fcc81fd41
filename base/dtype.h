#pragma once
// Element types. Floating point is what a gradient can flow through.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/half.h"

namespace zeroplan {

// Plans store the numbers: new types come last.
enum class DType : uint8_t { f32, f64, i64, i32, u8, boolean, i8, i16, u16, u32, u64, f16, bf16 };
inline constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::i64, DType::i32, DType::u8,  DType::boolean, DType::i8,
                                    DType::i16, DType::u16, DType::u32, DType::u64, DType::f16, DType::bf16};

int64_t dtype_bytes(DType dtype);
bool is_floating(DType dtype);
bool is_half(DType dtype);      // floating point of 16 bits
DType wide_dtype(DType dtype);  // what such elements are computed and summed in: f32 for 16 bits, else the type itself
std::string_view dtype_name(DType dtype);
DType parse_dtype(std::string_view name);  // throws Error on an unknown name

// For a switch over element types: what it does not handle must not pass for another type. Throws std::logic_error.
[[noreturn]] void unhandled_dtype(DType dtype);

// Calls fn with a value of the C++ type behind `dtype`: visit_dtype(t, [&](auto zero) { using T = decltype(zero); … }).
// fn computes with it; the types of 16 bits are for storage alone, and are refused (std::logic_error).
template <typename Fn>
decltype(auto) visit_dtype(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::f64: return fn(double{});
    case DType::i64: return fn(int64_t{});
    case DType::i32: return fn(int32_t{});
    case DType::u8: return fn(uint8_t{});
    case DType::boolean: return fn(bool{});
    case DType::f32: return fn(float{});
    case DType::i8: return fn(int8_t{});
    case DType::i16: return fn(int16_t{});
    case DType::u16: return fn(uint16_t{});
    case DType::u32: return fn(uint32_t{});
    case DType::u64: return fn(uint64_t{});
    case DType::f16:
    case DType::bf16: break;
  }
  unhandled_dtype(dtype);
}

// The same for what only moves, reads or writes elements: with Float16 and BFloat16.
template <typename Fn>
decltype(auto) visit_stored(DType dtype, Fn&& fn) {
  if (dtype == DType::f16) return fn(Float16{});
  if (dtype == DType::bf16) return fn(BFloat16{});
  return visit_dtype(dtype, fn);
}

}  // namespace zeroplan
