// Kernel launches and function attributes.
#include "cuda_host/kernel_launch.h"
#include "cudart/runtime.h"
#include "simt/run_kernel.h"

using namespace cuda_host;
using namespace cuda_host::rt;

namespace {

constexpr int default_dynamic_shared = 48 * 1024;
constexpr int largest_dynamic_shared = 227 * 1024;

std::mutex registry_mutex;
std::unordered_map<const void*, Unpack>& registry() {
  static auto* map = new std::unordered_map<const void*, Unpack>;
  return *map;
}

cudaError_t check_shape(const KernelLaunch& k) {
  const bool grid_ok = k.grid.x > 0 && k.grid.y > 0 && k.grid.z > 0 && k.grid.x <= 0x7FFFFFFFU && k.grid.y <= 65535U && k.grid.z <= 65535U;
  const bool block_ok =
      k.block.x > 0 && k.block.y > 0 && k.block.z > 0 && k.block.z <= 64U && std::uint64_t{k.block.x} * k.block.y * k.block.z <= 1024U;
  return grid_ok && block_ok ? cudaSuccess : cudaErrorInvalidConfiguration;
}

cudaError_t check_shared(const KernelLaunch& k) {
  const auto& limits = runtime().max_dynamic_shared;
  const auto it = limits.find(k.function);
  const int limit = it == limits.end() ? default_dynamic_shared : it->second;
  return k.shared_bytes <= static_cast<std::size_t>(limit) ? cudaSuccess : cudaErrorInvalidValue;
}

// Empty when every pointer argument is null or known to the device.
std::string check_pointers(const KernelLaunch& k, int device) {
  for (const PointerArgument& p : k.pointers) {
    if (device_can_reach(device, p.value)) continue;
    return "kernel argument " + std::to_string(p.index) + " points to memory that device " + std::to_string(device) +
           " cannot reach (host memory, freed, or another device)";
  }
  return {};
}

void run(const KernelLaunch& k, int device, std::uint64_t seed) {
  simt::Work work;
  work.grid = k.grid;
  work.block = k.block;
  work.shared_bytes = k.shared_bytes;
  work.body = &k.body;
  work.settings = settings();
  work.seed = seed;
  const std::string fault = simt::run_kernel(work);
  if (!fault.empty()) raise_fault(device, cudaErrorLaunchFailure, fault);
}

}  // namespace

namespace cuda_host {

cudaError_t submit(cudaStream_t handle, KernelLaunch launch) {
  int code = 0;
  if (injected("cudaLaunchKernel", code)) return finish(static_cast<cudaError_t>(code));
  if (const cudaError_t error = check_shape(launch); error != cudaSuccess) return finish(error);
  Runtime& r = runtime();
  std::string unreachable;
  int device = 0;
  {
    const Lock lock(r.mutex);
    CUstream_st* stream = resolve(handle);
    if (stream == nullptr || stream->device != current_device()) return finish(cudaErrorInvalidResourceHandle);
    device = stream->device;
    if (r.device(device).fault != cudaSuccess) return finish(r.device(device).fault);
    if (const cudaError_t error = check_shared(launch); error != cudaSuccess) return finish(error);
    if (settings().check_pointers) unreachable = check_pointers(launch, device);
    if (unreachable.empty()) {
      const std::uint64_t seed = settings().seed * 97U + r.next_id++;
      auto shared = std::make_shared<KernelLaunch>(std::move(launch));
      return finish(enqueue(stream, {"kernel", cudaGraphNodeTypeKernel, [shared, device, seed] { run(*shared, device, seed); }}));
    }
  }
  raise_fault(device, cudaErrorIllegalAddress, unreachable);
  return cudaSuccess;  // like the device: the launch is fine, the next wait is not
}

void register_kernel(const void* function, Unpack unpack) {
  const std::lock_guard lock(registry_mutex);
  registry()[function] = unpack;
}

}  // namespace cuda_host

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes, cudaStream_t stream) {
  Unpack unpack = nullptr;
  {
    const std::lock_guard lock(registry_mutex);
    const auto it = registry().find(function);
    if (it != registry().end()) unpack = it->second;
  }
  if (unpack == nullptr) return finish(cudaErrorInvalidDeviceFunction);
  KernelLaunch launch;
  launch.function = function;
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = shared_bytes;
  unpack(launch, args);
  return submit(stream, std::move(launch));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  if (config == nullptr) return finish(cudaErrorInvalidValue);
  return cudaLaunchKernel(function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  CUDA_HOST_BEGIN();
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > largest_dynamic_shared) return finish(cudaErrorInvalidValue);
  const Lock lock(runtime().mutex);
  runtime().max_dynamic_shared[function] = value;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  CUDA_HOST_BEGIN();
  if (attributes == nullptr || function == nullptr) return finish(cudaErrorInvalidValue);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  const Lock lock(runtime().mutex);
  const auto it = runtime().max_dynamic_shared.find(function);
  attributes->maxDynamicSharedSizeBytes = it == runtime().max_dynamic_shared.end() ? default_dynamic_shared : it->second;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  CUDA_HOST_BEGIN();
  return cudaSuccess;
}

// Only the limits the emulation knows: threads and dynamic shared memory.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size, size_t shared_bytes,
                                                                   unsigned) {
  CUDA_HOST_BEGIN();
  if (blocks == nullptr || function == nullptr || block_size <= 0) return finish(cudaErrorInvalidValue);
  int count = block_size > 1024 ? 0 : std::min(32, 2048 / block_size);
  if (shared_bytes > 0) count = std::min(count, static_cast<int>(static_cast<std::size_t>(largest_dynamic_shared) / shared_bytes));
  *blocks = count;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}
