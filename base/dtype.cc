#include "base/dtype.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

int64_t dtype_bytes(DType dtype) {
  return visit_stored(dtype, [](auto zero) { return static_cast<int64_t>(sizeof(zero)); });
}

bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || is_half(dtype); }
bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

DType wide_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
    case DType::boolean: return "boolean";
    case DType::i8: return "i8";
    case DType::i16: return "i16";
    case DType::u16: return "u16";
    case DType::u32: return "u32";
    case DType::u64: return "u64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
  }
  unhandled_dtype(dtype);
}

void unhandled_dtype(DType dtype) { throw std::logic_error(fmt::format("element type {} is not handled here", static_cast<int>(dtype))); }

DType parse_dtype(std::string_view name) {
  std::string known;
  for (DType dtype : kDTypes) {
    if (dtype_name(dtype) == name) return dtype;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", dtype_name(dtype));
  }
  throw Error(fmt::format("element type '{}' is not known; it is one of {}", name, known));
}

}  // namespace zeroplan
