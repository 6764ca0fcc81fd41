#include "base/type_name.h"

namespace zeroplan {

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float32";
    case DType::f64: return "float64";
    case DType::i64: return "int64";
    case DType::i32: return "int32";
    case DType::u8: return "uint8";
    case DType::boolean: return "bool";
  }
  unhandled_dtype(dtype);
}

}  // namespace zeroplan
