#pragma once
// 128 bits of neighbouring elements, loaded and stored as one.
#include <cstddef>
#include <cstdint>

#include "base/tensor_view.h"

namespace zeroplan::kernels_cuda {

inline constexpr int64_t kPackBytes = 16;

// kItems neighbours as one.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T) < kPackBytes ? kCount * sizeof(T) : kPackBytes) Neighbours {
  static constexpr int kItems = kCount;
  T item[kItems];
};
template <typename T>
using Pack = Neighbours<T, static_cast<int>(kPackBytes / sizeof(T))>;

inline bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kPackBytes == 0; }

}  // namespace zeroplan::kernels_cuda
