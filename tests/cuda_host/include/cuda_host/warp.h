// Warp shuffles, votes and reductions.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda_host/barriers.h"
#include "cuda_host/simt.h"

namespace cuda_host::simt {

template <class T>
concept Shuffled = std::is_trivially_copyable_v<T> && sizeof(T) <= 8;

template <Shuffled T>
T shuffle(unsigned mask, T value, unsigned source, const char* name, const Site& site) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = warp_exchange(WarpOp::Shuffle, mask, bits, source, name, site);
  T result;
  std::memcpy(static_cast<void*>(&result), &bits, sizeof(T));
  return result;
}

// The first lane of the segment of `width` lanes that `lane` belongs to.
inline unsigned segment_begin(unsigned lane, int width) { return lane & ~(static_cast<unsigned>(width) - 1U); }

}  // namespace cuda_host::simt

template <cuda_host::simt::Shuffled T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, CUDA_HOST_SITE) {
  const unsigned lane = cuda_host::simt::lane_id();
  const unsigned base = cuda_host::simt::segment_begin(lane, width);
  const unsigned offset = static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1U);
  return cuda_host::simt::shuffle(mask, value, base + offset, "__shfl_sync", site);
}

template <cuda_host::simt::Shuffled T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_HOST_SITE) {
  const unsigned lane = cuda_host::simt::lane_id();
  const unsigned base = cuda_host::simt::segment_begin(lane, width);
  const unsigned source = lane - base >= delta ? lane - delta : lane;
  return cuda_host::simt::shuffle(mask, value, source, "__shfl_up_sync", site);
}

template <cuda_host::simt::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_HOST_SITE) {
  const unsigned lane = cuda_host::simt::lane_id();
  const unsigned end = cuda_host::simt::segment_begin(lane, width) + static_cast<unsigned>(width);
  const unsigned source = lane + delta < end ? lane + delta : lane;
  return cuda_host::simt::shuffle(mask, value, source, "__shfl_down_sync", site);
}

template <cuda_host::simt::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize, CUDA_HOST_SITE) {
  const unsigned lane = cuda_host::simt::lane_id();
  const unsigned end = cuda_host::simt::segment_begin(lane, width) + static_cast<unsigned>(width);
  const unsigned wanted = lane ^ static_cast<unsigned>(lane_mask);
  return cuda_host::simt::shuffle(mask, value, wanted < end ? wanted : lane, "__shfl_xor_sync", site);
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFU, CUDA_HOST_SITE) {
  cuda_host::simt::warp_exchange(cuda_host::simt::WarpOp::Sync, mask, 0, 0, "__syncwarp", site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_HOST_SITE) {
  return static_cast<unsigned>(
      cuda_host::simt::warp_exchange(cuda_host::simt::WarpOp::Ballot, mask, predicate != 0, 0, "__ballot_sync", site));
}
inline int __any_sync(unsigned mask, int predicate, CUDA_HOST_SITE) {
  return static_cast<int>(cuda_host::simt::warp_exchange(cuda_host::simt::WarpOp::Any, mask, predicate != 0, 0, "__any_sync", site));
}
inline int __all_sync(unsigned mask, int predicate, CUDA_HOST_SITE) {
  return static_cast<int>(cuda_host::simt::warp_exchange(cuda_host::simt::WarpOp::All, mask, predicate != 0, 0, "__all_sync", site));
}
template <cuda_host::simt::Shuffled T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_HOST_SITE) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(cuda_host::simt::warp_exchange(cuda_host::simt::WarpOp::MatchAny, mask, bits, 0, "__match_any_sync", site));
}

// Lanes are not in lock step here, so the only honest answer is the set of
// lanes that exist; code that expects a converged subset must use __ballot_sync.
unsigned __activemask();

#define CUDA_HOST_REDUCE(name, type, op)                                                                                   \
  inline type name(unsigned mask, type value, CUDA_HOST_SITE) {                                                            \
    return static_cast<type>(cuda_host::simt::warp_exchange(                                                               \
        cuda_host::simt::WarpOp::op, mask, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), 0, #name, site)); \
  }
CUDA_HOST_REDUCE(__reduce_add_sync, int, AddSigned)
CUDA_HOST_REDUCE(__reduce_add_sync, unsigned, AddSigned)
CUDA_HOST_REDUCE(__reduce_min_sync, int, MinSigned)
CUDA_HOST_REDUCE(__reduce_min_sync, unsigned, MinUnsigned)
CUDA_HOST_REDUCE(__reduce_max_sync, int, MaxSigned)
CUDA_HOST_REDUCE(__reduce_max_sync, unsigned, MaxUnsigned)
CUDA_HOST_REDUCE(__reduce_and_sync, unsigned, And)
CUDA_HOST_REDUCE(__reduce_or_sync, unsigned, Or)
CUDA_HOST_REDUCE(__reduce_xor_sync, unsigned, Xor)
#undef CUDA_HOST_REDUCE
