#include "runtime/comm/fold.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"

namespace zeroplan {
namespace {

template <typename T, typename From = T>
void add(T* __restrict accumulator, const From* __restrict addend, int64_t n) {
  for (int64_t i = 0; i < n; ++i) accumulator[i] += static_cast<T>(addend[i]);
}

}  // namespace

void require_summable(DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i64)
    throw Error(fmt::format("collectives do not sum {}; float32, float64 and int64 are summed", type_name(dtype)));
}

void require_foldable(DType dtype) {
  if (!is_half(dtype)) require_summable(dtype);
}

void add_in_place(void* accumulator, const void* addend, int64_t elements, DType dtype) {
  switch (dtype) {
    case DType::f32: return add(static_cast<float*>(accumulator), static_cast<const float*>(addend), elements);
    case DType::f64: return add(static_cast<double*>(accumulator), static_cast<const double*>(addend), elements);
    // Unsigned: limbs of an exact accumulator may wrap.
    case DType::i64: return add(static_cast<uint64_t*>(accumulator), static_cast<const uint64_t*>(addend), elements);
    case DType::f16: return add(static_cast<float*>(accumulator), static_cast<const Float16*>(addend), elements);
    case DType::bf16: return add(static_cast<float*>(accumulator), static_cast<const BFloat16*>(addend), elements);
    default: require_summable(dtype); unhandled_dtype(dtype);
  }
}

}  // namespace zeroplan
