#include "base/dtype.h"

#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

int64_t dtype_bytes(DType dtype) {
  return visit_dtype(dtype, [](auto zero) { return static_cast<int64_t>(sizeof(zero)); });
}

bool is_floating(DType dtype) {
  return visit_dtype(dtype, [](auto zero) { return std::is_floating_point_v<decltype(zero)>; });
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
    case DType::boolean: return "boolean";
  }
  unhandled_dtype(dtype);
}

void unhandled_dtype(DType dtype) { throw std::logic_error(fmt::format("element type {} is not handled here", static_cast<int>(dtype))); }

DType parse_dtype(std::string_view name) {
  for (DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32, DType::u8, DType::boolean})
    if (dtype_name(dtype) == name) return dtype;
  throw Error(fmt::format("element type '{}' is not known; use f32, f64, i64, i32, u8 or boolean", name));
}

}  // namespace zeroplan
