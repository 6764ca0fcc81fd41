// The C++ conveniences of cuda_runtime.h that exist under nvcc only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

template <class Result, class... Params>
cudaError_t cudaFuncSetAttribute(Result (*kernel)(Params...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class Result, class... Params>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Result (*kernel)(Params...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class Result, class... Params>
cudaError_t cudaFuncSetCacheConfig(Result (*kernel)(Params...), cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void*>(kernel), config);
}

// A symbol is passed by reference; a pointer would pick the C function.
template <class T>
requires(!std::is_pointer_v<T>) cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, std::size_t bytes,
                                                               std::size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpyToSymbol(reinterpret_cast<const void*>(&symbol), source, bytes, offset, kind);
}
template <class T>
requires(!std::is_pointer_v<T>) cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpyFromSymbol(target, reinterpret_cast<const void*>(&symbol), bytes, offset, kind);
}
