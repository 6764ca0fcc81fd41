#pragma once
// Copies between two strided views of one shape.
#include "base/tensor_view.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// from and to have the same dims and element size and do not overlap.
void copy_strided(const TensorView& from, const TensorView& to, int threads);

// The type of the same size that bytes are moved as.
template <typename Fn>
inline void visit_width(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
    case DType::u32: return fn(uint32_t{});
    case DType::f64:
    case DType::i64:
    case DType::u64: return fn(uint64_t{});
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16: return fn(uint16_t{});
    case DType::i8:
    case DType::u8:
    case DType::boolean: return fn(uint8_t{});
  }
  unhandled_dtype(dtype);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
