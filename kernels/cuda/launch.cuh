#pragma once
// How kernels are started, and the two spellings that the CUDA compiler and the host build of tests/cuda_host share: launch() instead of
// <<<>>>, ZP_DYNAMIC_SHARED instead of extern __shared__.
#include <algorithm>
#include <utility>

#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"

// ZP_DYNAMIC_SHARED(float, tile); declares `float* const tile`: the launch's dynamic shared memory, aligned to 16 bytes. Once per kernel.
#ifndef ZP_DYNAMIC_SHARED
#define ZP_DYNAMIC_SHARED(type, name)                                 \
  extern __shared__ __align__(16) unsigned char zp_dynamic_shared_[]; \
  type* const name = reinterpret_cast<type*>(zp_dynamic_shared_)
#endif

namespace zeroplan::kernels_cuda {

inline constexpr int kBlock = 256;  // threads of a block where a kernel has no reason for another number
inline constexpr int kWarp = 32;

// CUDA: cudaLaunchKernelEx.
template <typename... P, typename... A>
inline void launch_on(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(P...), A&&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<A>(arguments)...), "cudaLaunchKernelEx");
}

// On the context's stream.
template <typename... P, typename... A>
inline void launch(const KernelArgs& args, dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(P...), A&&... arguments) {
  launch_on(context_of(args).stream(), grid, block, shared_bytes, kernel, std::forward<A>(arguments)...);
}

// Enough blocks for n items, one thread each; at most what keeps every multiprocessor busy: such kernels loop with for_items.
inline unsigned blocks_for(const KernelArgs& args, int64_t n, int block = kBlock) {
  const int64_t wanted = (n + block - 1) / block, most = int64_t{context_of(args).multiprocessors()} * 16;
  return static_cast<unsigned>(std::max<int64_t>(1, std::min(wanted, most)));
}

// kernel(n, arguments…) over n items, which it visits by for_items(n, …).
template <typename... P, typename... A>
inline void launch_over(const KernelArgs& args, int64_t n, void (*kernel)(int64_t, P...), A&&... arguments) {
  if (n > 0) launch(args, blocks_for(args, n), kBlock, 0, kernel, n, std::forward<A>(arguments)...);
}

// fn(i) for this thread's share of [0, n).
template <typename Fn>
__device__ inline void for_items(int64_t n, const Fn& fn) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) fn(i);
}

// Keeps the first fault of the program.
__device__ inline void report_fault(KernelFault* fault, KernelFault found) {
  if (atomicCAS(&fault->kind, int32_t{KernelFault::none}, found.kind) != KernelFault::none) return;
  fault->place = found.place;
  fault->value = found.value;
  fault->position = found.position;
  fault->limit = found.limit;
}

}  // namespace zeroplan::kernels_cuda
