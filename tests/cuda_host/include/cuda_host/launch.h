// The two spots where a kernel source must differ from plain CUDA so that g++
// can parse it: the launch and the declaration of dynamic shared memory.
// The same file serves nvcc.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#ifdef CUDA_HOST_EMULATION
#include "cuda_host/kernel_launch.h"
#include "cuda_host/simt.h"
#endif

// CUDA_DYNAMIC_SHARED(float, tile); declares `float* const tile`, the start of
// the launch's dynamic shared memory. Use it once per kernel and carve the
// pointer up by hand.
#ifdef CUDA_HOST_EMULATION
#define CUDA_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(cuda_host::simt::dynamic_shared())
#else
#define CUDA_DYNAMIC_SHARED(type, name)                                      \
  extern __shared__ __align__(16) unsigned char cuda_host_dynamic_shared_[]; \
  type* const name = reinterpret_cast<type*>(cuda_host_dynamic_shared_)
#endif

namespace cuda_host {

#ifndef CUDA_HOST_EMULATION

template <class... Params, class... Args>
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, std::size_t shared_bytes, void (*kernel)(Params...), Args&&... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
}

#else

template <class... Params>
struct KernelCall {
  using Arguments = std::tuple<std::decay_t<Params>...>;
  using Function = void (*)(Params...);

  static void bind(KernelLaunch& launch, Function kernel, Arguments arguments) {
    launch.function = reinterpret_cast<const void*>(kernel);
    note_pointers(launch, arguments, std::index_sequence_for<Params...>{});
    // Arguments are copied per thread: a kernel may change its parameters.
    launch.body = [kernel, arguments = std::move(arguments)] { std::apply(kernel, arguments); };
  }

  static void unpack(KernelLaunch& launch, void** args) { unpack_each(launch, args, std::index_sequence_for<Params...>{}); }

 private:
  template <std::size_t... I>
  static void note_pointers(KernelLaunch& launch, const Arguments& arguments, std::index_sequence<I...>) {
    (note_pointer(launch, I, std::get<I>(arguments)), ...);
  }
  template <class T>
  static void note_pointer(KernelLaunch& launch, std::size_t index, const T& value) {
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T> >) {
      const volatile void* any = value;
      launch.pointers.push_back({index, const_cast<const void*>(any)});
    }
  }
  template <std::size_t... I>
  static void unpack_each(KernelLaunch& launch, void** args, std::index_sequence<I...>) {
    auto kernel = reinterpret_cast<Function>(const_cast<void*>(launch.function));
    bind(launch, kernel, Arguments(*static_cast<std::decay_t<Params>*>(args[I])...));
  }
};

template <class... Params>
void register_kernel(void (*kernel)(Params...)) {
  register_kernel(reinterpret_cast<const void*>(kernel), &KernelCall<Params...>::unpack);
}

template <class... Params, class... Args>
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, std::size_t shared_bytes, void (*kernel)(Params...), Args&&... args) {
  KernelLaunch request;
  request.grid = grid;
  request.block = block;
  request.shared_bytes = shared_bytes;
  KernelCall<Params...>::bind(request, kernel, {std::forward<Args>(args)...});
  return submit(stream, std::move(request));
}

#endif

}  // namespace cuda_host

#ifdef CUDA_HOST_EMULATION
template <class... Params, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...), Args&&... args) {
  if (config == nullptr) return cudaErrorInvalidValue;
  return cuda_host::launch(config->stream, config->gridDim, config->blockDim, config->dynamicSmemBytes, kernel,
                           std::forward<Args>(args)...);
}

// More specialised than the toolkit's template, so it wins and keeps the signature.
template <class... Params>
cudaError_t cudaLaunchKernel(void (*kernel)(Params...), dim3 grid, dim3 block, void** args, std::size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr) {
  cuda_host::register_kernel(kernel);
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, args, shared_bytes, stream);
}
#endif
