// cudaMalloc & co. and the copies.
#include <cstring>

#include "cudart/runtime.h"

using namespace cuda_host;
using namespace cuda_host::rt;

namespace {

cudaError_t allocate_call(void** pointer, std::size_t bytes, MemoryKind kind, unsigned flags) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (const cudaError_t error = unsafe_call(); error != cudaSuccess) return finish(error);
  return finish(allocate(pointer, bytes, kind, flags));
}

cudaError_t release_call(void* pointer, MemoryKind kind) {
  if (pointer == nullptr) return cudaSuccess;
  Runtime& r = runtime();
  Lock lock(r.mutex);
  if (const cudaError_t error = unsafe_call(); error != cudaSuccess) return finish(error);
  // cudaFree waits for the device; cudaFreeHost is not promised to.
  if (kind == MemoryKind::Device) {
    if (const cudaError_t error = wait_device(lock, current_device()); error != cudaSuccess) return finish(error);
  }
  return finish(release(pointer, kind));
}

bool is_card_memory(const Allocation* a) { return a != nullptr && (a->kind == MemoryKind::Device || a->kind == MemoryKind::Managed); }

// A pointer of the wrong side is what a real device answers with a fault or a
// silent corruption, depending on the machine: refuse it.
cudaError_t check_side(const void* pointer, std::size_t bytes, bool want_device) {
  const Allocation* a = find_memory(pointer);
  if (want_device) return on_device(pointer, bytes) ? cudaSuccess : cudaErrorInvalidValue;
  if (a == nullptr) return cudaSuccess;  // pageable
  if (a->kind == MemoryKind::Device) return cudaErrorInvalidValue;
  return static_cast<const char*>(pointer) + bytes <= a->base + a->bytes ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t check_copy(const void* dst, std::size_t dst_bytes, const void* src, std::size_t src_bytes, cudaMemcpyKind& kind) {
  if (dst == nullptr || src == nullptr) return cudaErrorInvalidValue;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (kind == cudaMemcpyDefault) {
    const bool from = is_card_memory(find_memory(src));
    const bool to = is_card_memory(find_memory(dst));
    kind = from ? (to ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost) : (to ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost);
  }
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const cudaError_t error = check_side(dst, dst_bytes, to_device);
  return error != cudaSuccess ? error : check_side(src, src_bytes, from_device);
}

struct Rows {
  void* dst;
  std::size_t dst_pitch;
  const void* src;
  std::size_t src_pitch, width, height;
};

void copy_rows(const Rows& c) {
  for (std::size_t y = 0; y < c.height; ++y) {
    std::memmove(static_cast<char*>(c.dst) + y * c.dst_pitch, static_cast<const char*>(c.src) + y * c.src_pitch, c.width);
  }
}

// Pageable memory: the source is staged before the call returns, and a copy to
// the host is complete on return. Pinned memory is fully asynchronous.
cudaError_t copy(Rows c, cudaMemcpyKind kind, cudaStream_t handle, bool synchronous) {
  if (c.width == 0 || c.height == 0) return cudaSuccess;
  Runtime& r = runtime();
  Lock lock(r.mutex);
  if (synchronous) {
    if (const cudaError_t error = unsafe_call(); error != cudaSuccess) return error;
  }
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (c.dst_pitch < c.width || c.src_pitch < c.width) return cudaErrorInvalidPitchValue;
  const std::size_t dst_bytes = c.dst_pitch * (c.height - 1) + c.width;
  const std::size_t src_bytes = c.src_pitch * (c.height - 1) + c.width;
  cudaError_t error = check_copy(c.dst, dst_bytes, c.src, src_bytes, kind);
  if (error != cudaSuccess) return error;
  const bool pageable_source = kind == cudaMemcpyHostToDevice && find_memory(c.src) == nullptr;
  const bool pageable_target = kind == cudaMemcpyDeviceToHost && find_memory(c.dst) == nullptr;
  std::shared_ptr<std::vector<char>> staged;
  if (pageable_source && !synchronous && !stream->capture) {
    const char* first = static_cast<const char*>(c.src);
    staged = std::make_shared<std::vector<char>>(first, first + src_bytes);
    c.src = staged->data();
  }
  OperationPtr op;
  error = enqueue(stream, {"memcpy", cudaGraphNodeTypeMemcpy, [c, staged] { copy_rows(c); }}, &op);
  if (error != cudaSuccess || (!synchronous && !pageable_target)) return error;
  return wait_done(lock, op);
}

cudaError_t set(void* pointer, std::size_t pitch, int value, std::size_t width, std::size_t height, cudaStream_t handle, bool synchronous) {
  if (width == 0 || height == 0) return cudaSuccess;
  Runtime& r = runtime();
  Lock lock(r.mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const std::size_t bytes = pitch * (height - 1) + width;
  if (pitch < width || !on_device(pointer, bytes)) return cudaErrorInvalidValue;
  auto fill = [=] {
    for (std::size_t y = 0; y < height; ++y) std::memset(static_cast<char*>(pointer) + y * pitch, value, width);
  };
  OperationPtr op;
  const cudaError_t error = enqueue(stream, {"memset", cudaGraphNodeTypeMemset, fill}, &op);
  return error == cudaSuccess && synchronous ? wait_done(lock, op) : error;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  CUDA_HOST_BEGIN();
  return allocate_call(pointer, bytes, MemoryKind::Device, 0);
}
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  CUDA_HOST_BEGIN();
  return allocate_call(pointer, bytes, MemoryKind::Managed, flags);
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  CUDA_HOST_BEGIN();
  return allocate_call(pointer, bytes, MemoryKind::Pinned, 0);
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  CUDA_HOST_BEGIN();
  return allocate_call(pointer, bytes, MemoryKind::Pinned, flags);
}
cudaError_t cudaFree(void* pointer) {
  CUDA_HOST_BEGIN();
  return release_call(pointer, MemoryKind::Device);
}
cudaError_t cudaFreeHost(void* pointer) {
  CUDA_HOST_BEGIN();
  return release_call(pointer, MemoryKind::Pinned);
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  const CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (stream->capture) return finish(cudaErrorNotSupported);
  return finish(allocate(pointer, bytes, MemoryKind::Device, 0));
}

// The memory goes when the stream gets there: a later use elsewhere is a
// use-after-free that AddressSanitizer reports.
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  if (pointer == nullptr) return cudaSuccess;
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (stream->capture) return finish(cudaErrorNotSupported);
  if (!on_device(pointer, 0)) return finish(cudaErrorInvalidValue);
  auto free_now = [pointer] {
    const Lock inner(runtime().mutex);
    release(pointer, MemoryKind::Device);
  };
  return finish(enqueue(stream, {"free", cudaGraphNodeTypeMemFree, free_now}));
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  CUDA_HOST_BEGIN();
  if (pointer == nullptr || bytes == 0) return finish(cudaErrorInvalidValue);
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  const Allocation* known = find_memory(pointer);
  if (known != nullptr && static_cast<char*>(pointer) < known->base + known->bytes) {
    return finish(cudaErrorHostMemoryAlreadyRegistered);
  }
  char* base = static_cast<char*>(pointer);
  r.memory[base] = {base, bytes, MemoryKind::Registered, current_device(), flags, false};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* pointer) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  const cudaError_t error = release(pointer, MemoryKind::Registered);
  return finish(error == cudaSuccess ? error : cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (device == nullptr || find_memory(host) == nullptr) return finish(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  CUDA_HOST_BEGIN();
  return finish(copy({dst, bytes, src, bytes, bytes, 1}, kind, nullptr, true));
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_HOST_BEGIN();
  return finish(copy({dst, bytes, src, bytes, bytes, 1}, kind, stream, false));
}
cudaError_t cudaMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_HOST_BEGIN();
  return finish(copy({dst, dst_pitch, src, src_pitch, width, height}, kind, nullptr, true));
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_HOST_BEGIN();
  return finish(copy({dst, dst_pitch, src, src_pitch, width, height}, kind, stream, false));
}
cudaError_t cudaMemcpyPeer(void* dst, int, const void* src, int, size_t bytes) {
  CUDA_HOST_BEGIN();
  return finish(copy({dst, bytes, src, bytes, bytes, 1}, cudaMemcpyDeviceToDevice, nullptr, true));
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t bytes, cudaStream_t stream) {
  CUDA_HOST_BEGIN();
  return finish(copy({dst, bytes, src, bytes, bytes, 1}, cudaMemcpyDeviceToDevice, stream, false));
}

// __device__ and __constant__ variables are plain globals here.
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t bytes, size_t offset, cudaMemcpyKind) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  Lock lock(r.mutex);
  char* dst = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  OperationPtr op;
  const cudaError_t error = enqueue(resolve(nullptr), {"memcpy", cudaGraphNodeTypeMemcpy, [=] { std::memcpy(dst, src, bytes); }}, &op);
  return finish(error == cudaSuccess ? wait_done(lock, op) : error);
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  Lock lock(r.mutex);
  const char* src = static_cast<const char*>(symbol) + offset;
  OperationPtr op;
  const cudaError_t error = enqueue(resolve(nullptr), {"memcpy", cudaGraphNodeTypeMemcpy, [=] { std::memcpy(dst, src, bytes); }}, &op);
  return finish(error == cudaSuccess ? wait_done(lock, op) : error);
}

// On a real device cudaMemset is asynchronous to the host as well.
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  CUDA_HOST_BEGIN();
  return finish(set(pointer, bytes, value, bytes, 1, nullptr, false));
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  CUDA_HOST_BEGIN();
  return finish(set(pointer, bytes, value, bytes, 1, stream, false));
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  CUDA_HOST_BEGIN();
  return finish(set(pointer, pitch, value, width, height, stream, false));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  CUDA_HOST_BEGIN();
  if (free == nullptr || total == nullptr) return finish(cudaErrorInvalidValue);
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  *total = settings().device_memory;
  *free = *total - r.device(current_device()).used;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  CUDA_HOST_BEGIN();
  if (attributes == nullptr) return finish(cudaErrorInvalidValue);
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = -1;
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  attributes->hostPointer = const_cast<void*>(pointer);
  const Allocation* a = find_memory(pointer);
  if (a == nullptr) return cudaSuccess;
  attributes->device = a->device;
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->type = a->kind == MemoryKind::Device    ? cudaMemoryTypeDevice
                     : a->kind == MemoryKind::Managed ? cudaMemoryTypeManaged
                                                      : cudaMemoryTypeHost;
  if (a->kind == MemoryKind::Device) attributes->hostPointer = nullptr;
  return cudaSuccess;
}
