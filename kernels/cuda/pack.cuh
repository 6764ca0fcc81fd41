#pragma once
// Sixteen bytes of elements, moved by one instruction.
#include "kernels/cuda/launch.cuh"

namespace zeroplan::kernels_cuda {

template <typename T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T at[kCount];
};

inline bool takes_packs(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }
// Of a pointer that takes packs, or none.
template <typename T>
__device__ inline Pack<T> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <typename T>
__device__ inline void store_pack(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

}  // namespace zeroplan::kernels_cuda
