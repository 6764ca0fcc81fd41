#pragma once
// Copies between two strided views of one shape.
#include "base/tensor_view.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// from and to have the same dims and element size and do not overlap.
void copy_strided(const TensorView& from, const TensorView& to, int threads);

// The type of the same size that bytes are moved as.
template <typename Fn>
inline void visit_width(DType dtype, const Fn& fn) {
  if (dtype == DType::f32 || dtype == DType::i32)
    fn(uint32_t{});
  else if (dtype == DType::f64 || dtype == DType::i64)
    fn(uint64_t{});
  else
    fn(uint8_t{});
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
