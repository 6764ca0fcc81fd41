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
    case DType::i8: return "int8";
    case DType::i16: return "int16";
    case DType::u16: return "uint16";
    case DType::u32: return "uint32";
    case DType::u64: return "uint64";
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
  }
  unhandled_dtype(dtype);
}

}  // namespace zeroplan
