#pragma once
// What reductions join elements by, and the types that they do it in.
#include <limits>

#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

template <typename T>
inline constexpr bool kWhole = std::is_integral_v<T>;

// A few elements of storage type T are joined as PartOf, those in TotalOf. Sums and products of integers wrap at 64 bits.
template <typename Op, typename T>
using PartOf = typename Op::template Types<T>::Part;
template <typename Op, typename T>
using TotalOf = typename Op::template Types<T>::Total;

struct SumOp {
  template <typename T>
  struct Types {
    using Part = std::conditional_t<kWhole<T>, uint64_t, WideOf<T>>;
    using Total = std::conditional_t<kWhole<T>, uint64_t, double>;
  };
  template <typename V>
  static constexpr __device__ V start() {
    return V(0);
  }
  template <typename V>
  static __device__ V join(V a, V b) {
    return a + b;
  }
  template <typename Result, typename V>
  static __device__ Result finish(V total, double divisor) {
    if constexpr (kWhole<V>)
      return static_cast<Result>(total);
    else
      return narrow<Result>(total / divisor);
  }
};

// Factors are joined one by one in double: a run of small ones would vanish in the type of the operand.
struct ProdOp {
  template <typename T>
  struct Types {
    using Part = std::conditional_t<kWhole<T>, uint64_t, double>;
    using Total = Part;
  };
  template <typename V>
  static constexpr __device__ V start() {
    return V(1);
  }
  template <typename V>
  static __device__ V join(V a, V b) {
    return a * b;
  }
  template <typename Result, typename V>
  static __device__ Result finish(V total, double) {
    return narrow<Result>(total);
  }
};

// A nan wins.
struct MaxOp {
  template <typename T>
  struct Types {
    using Part = std::conditional_t<kWhole<T>, T, WideOf<T>>;
    using Total = Part;
  };
  template <typename V>
  static constexpr __device__ V start() {
    if constexpr (kWhole<V>)
      return std::numeric_limits<V>::min();
    else
      return -std::numeric_limits<V>::infinity();
  }
  template <typename V>
  static __device__ V join(V a, V b) {
    return a > b || a != a ? a : b;
  }
  template <typename Result, typename V>
  static __device__ Result finish(V total, double) {
    return narrow<Result>(total);
  }
};

}  // namespace zeroplan::kernels_cuda
