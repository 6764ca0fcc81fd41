// A launch with its types erased: what the launch template hands to the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace cuda_host {

struct PointerArgument {
  std::size_t index;
  const void* value;
};

struct KernelLaunch {
  const void* function = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::function<void()> body;  // one call is one CUDA thread
  std::vector<PointerArgument> pointers;
};

cudaError_t submit(cudaStream_t stream, KernelLaunch launch);

// Rebuilds a body from the untyped argument array of cudaLaunchKernel.
using Unpack = void (*)(KernelLaunch& launch, void** args);
void register_kernel(const void* function, Unpack unpack);

}  // namespace cuda_host
