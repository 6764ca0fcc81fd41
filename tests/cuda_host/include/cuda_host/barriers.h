// Block barriers, fences and the few odd device functions around them.
#pragma once

#include <atomic>
#include <chrono>

#include "cuda_host/simt.h"

#define CUDA_HOST_SITE cuda_host::simt::Site site = cuda_host::simt::Site::current()

inline void __syncthreads(CUDA_HOST_SITE) { cuda_host::simt::block_barrier(cuda_host::simt::BlockOp::Sync, 0, "__syncthreads", site); }
inline int __syncthreads_count(int predicate, CUDA_HOST_SITE) {
  return cuda_host::simt::block_barrier(cuda_host::simt::BlockOp::Count, predicate, "__syncthreads_count", site);
}
inline int __syncthreads_and(int predicate, CUDA_HOST_SITE) {
  return cuda_host::simt::block_barrier(cuda_host::simt::BlockOp::And, predicate, "__syncthreads_and", site);
}
inline int __syncthreads_or(int predicate, CUDA_HOST_SITE) {
  return cuda_host::simt::block_barrier(cuda_host::simt::BlockOp::Or, predicate, "__syncthreads_or", site);
}

// x86 is stronger than the GPU here: a missing fence is not exposed.
inline void __threadfence() {
#ifndef __SANITIZE_THREAD__  // unsupported there, and the atomics order enough
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  cuda_host::simt::spin_tick();
}
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }

inline void __nanosleep(unsigned) { cuda_host::simt::yield(); }
[[noreturn]] inline void __trap(CUDA_HOST_SITE) { cuda_host::simt::fault("__trap()", site); }

inline long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
