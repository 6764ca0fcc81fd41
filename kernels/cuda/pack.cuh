#pragma once
// 128 bits of neighbouring elements, loaded and stored as one.
#include <cstddef>
#include <cstdint>

#include "base/tensor_view.h"

namespace zeroplan::kernels_cuda {

inline constexpr int64_t kPackBytes = 16;

template <typename T>
struct alignas(kPackBytes) Pack {
  static constexpr int kItems = static_cast<int>(kPackBytes / sizeof(T));
  T item[kItems];
};

inline bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kPackBytes == 0; }

}  // namespace zeroplan::kernels_cuda
