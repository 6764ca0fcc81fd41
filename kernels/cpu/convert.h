#pragma once
// Strided runs of any element type, read into and written from a block of T.
#include <type_traits>

#include "base/dtype.h"
#include "base/tensor_view.h"
#include "kernels/scalar/converted.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

template <typename T>
inline bool is_type(DType dtype) {
  if constexpr (std::is_same_v<T, float>)
    return dtype == DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return dtype == DType::f64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return dtype == DType::u64;
  else
    return dtype == DType::i64;
}

template <typename T>
constexpr bool kHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// As converted, and from and to 16-bit floating point, which integers become by way of float.
template <typename To, typename From>
inline To stored_as(From x) {
  if constexpr (kHalf<From>)
    return converted<To>(static_cast<float>(x));
  else if constexpr (kHalf<To> && std::is_floating_point_v<From>)
    return To(x);
  else if constexpr (kHalf<To>)
    return To(static_cast<float>(x));
  else
    return converted<To>(x);
}

template <typename T, typename From>
inline void fetch_run(const From* from, int64_t stride, int64_t n, T* to) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = stored_as<T>(from[i]);
  } else if (stride == 0) {
    const T value = stored_as<T>(from[0]);
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = stored_as<T>(from[i * stride]);
  }
}

// to[0…n) from the elements at offset, offset + stride, …
template <typename T>
inline void fetch(const TensorView& view, int64_t offset, int64_t stride, int64_t n, T* to) {
  visit_stored(view.dtype, [&](auto zero) { fetch_run(static_cast<const decltype(zero)*>(view.data) + offset, stride, n, to); });
}

template <typename T>
inline void put(const T* from, int64_t n, const TensorView& view, int64_t offset, int64_t stride) {
  visit_stored(view.dtype, [&](auto zero) {
    using To = decltype(zero);
    To* to = static_cast<To*>(view.data) + offset;
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = stored_as<To>(from[i]);
    else
      for (int64_t i = 0; i < n; ++i) to[i * stride] = stored_as<To>(from[i]);
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
