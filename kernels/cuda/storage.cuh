#pragma once
// Element types as they lie in memory, and the types that kernels compute in: float for those of 16 bits, else the type itself.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/scalar/converted.h"

namespace zeroplan::kernels_cuda {

template <typename T>
struct Wide {
  using type = T;
};
template <>
struct Wide<__half> {
  using type = float;
};
template <>
struct Wide<__nv_bfloat16> {
  using type = float;
};
// What elements of storage type T are computed in.
template <typename T>
using WideOf = typename Wide<T>::type;

__device__ inline float widen(__half x) { return __half2float(x); }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ inline T widen(T x) {
  return x;
}

// Rounds to the nearest, ties to even; integers as kernels/scalar/converted.h.
template <typename To, typename From>
__device__ inline To narrow(From x) {
  if constexpr (std::is_same_v<To, From>)
    return x;
  else if constexpr (std::is_same_v<To, __half> && std::is_same_v<From, double>)
    return __double2half(x);
  else if constexpr (std::is_same_v<To, __half>)
    return __float2half_rn(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, __nv_bfloat16> && std::is_same_v<From, double>)
    return __double2bfloat16(x);
  else if constexpr (std::is_same_v<To, __nv_bfloat16>)
    return __float2bfloat16_rn(static_cast<float>(x));
  else
    return converted<To>(x);
}

// Calls fn with a zero of the storage type: float, double, __half or __nv_bfloat16.
template <typename Fn>
inline void visit_floating(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::f32: return fn(float{});
    case DType::f64: return fn(double{});
    case DType::f16: return fn(__half{});
    case DType::bf16: return fn(__nv_bfloat16{});
    default: unhandled_dtype(dtype);
  }
}

// Calls fn with an unsigned zero of so many bytes, 1, 2, 4 or 8, or as wide as an element: for what only moves bytes.
template <typename Fn>
inline void visit_width(int64_t bytes, const Fn& fn) {
  switch (bytes) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    case 8: return fn(uint64_t{});
    default: check(false, "what is moved has 1, 2, 4 or 8 bytes");
  }
}
template <typename Fn>
inline void visit_width(DType dtype, const Fn& fn) {
  visit_width(dtype_bytes(dtype), fn);
}

// On the device: calls fn with a zero of the storage type. A branch that all threads take alike.
template <typename Fn>
__device__ inline void visit_stored_type(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::f32: return fn(float{});
    case DType::f64: return fn(double{});
    case DType::f16: return fn(__half{});
    case DType::bf16: return fn(__nv_bfloat16{});
    case DType::i64: return fn(int64_t{});
    case DType::u64: return fn(uint64_t{});
    case DType::i32: return fn(int32_t{});
    case DType::u32: return fn(uint32_t{});
    case DType::i16: return fn(int16_t{});
    case DType::u16: return fn(uint16_t{});
    case DType::i8: return fn(int8_t{});
    case DType::u8: return fn(uint8_t{});
    case DType::boolean: return fn(bool{});
  }
}

// Element i of storage `dtype` as T, and back.
template <typename T>
__device__ inline T load_as(const void* data, DType dtype, int64_t i) {
  T value{};
  visit_stored_type(dtype, [&](auto zero) { value = narrow<T>(widen(static_cast<const decltype(zero)*>(data)[i])); });
  return value;
}
template <typename T>
__device__ inline void store_from(void* data, DType dtype, int64_t i, T value) {
  visit_stored_type(dtype, [&](auto zero) { static_cast<decltype(zero)*>(data)[i] = narrow<decltype(zero)>(value); });
}

}  // namespace zeroplan::kernels_cuda
