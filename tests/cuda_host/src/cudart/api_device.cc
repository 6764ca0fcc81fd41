// Devices, errors, versions, and the test-side reset.
#include <algorithm>
#include <cstring>

#include "cudart/runtime.h"

using namespace cuda_host;
using namespace cuda_host::rt;

namespace {

bool valid_device(int device) { return device >= 0 && device < settings().device_count; }

void fill_limits(cudaDeviceProp& p) {
  p.sharedMemPerBlock = 48 * 1024;
  p.sharedMemPerBlockOptin = 227 * 1024;
  p.sharedMemPerMultiprocessor = 228 * 1024;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7FFFFFFF;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.multiProcessorCount = 4;  // small, so that grid-stride loops really stride
}

cudaDeviceProp properties(int device) {
  cudaDeviceProp p = {};
  std::snprintf(p.name, sizeof(p.name), device == settings().other_card ? "another card of cuda_host" : "a card of cuda_host");
  p.uuid.bytes[0] = static_cast<char>(device + 1);
  p.totalGlobalMem = settings().device_memory;
  p.major = 9;
  p.minor = 0;
  fill_limits(p);
  p.totalConstMem = 65536;
  p.textureAlignment = 512;
  p.memPitch = 0x7FFFFFFF;
  p.concurrentKernels = p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = 1;
  p.streamPrioritiesSupported = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.asyncEngineCount = 2;
  p.l2CacheSize = 1 << 20;
  p.memoryBusWidth = 64;
  p.pciBusID = device + 1;
  return p;
}

// False for an attribute the emulation has no opinion about.
bool attribute_value(cudaDeviceAttr attribute, const cudaDeviceProp& p, int& value) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: value = p.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: value = p.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: value = p.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: value = static_cast<int>(p.sharedMemPerMultiprocessor); break;
    case cudaDevAttrReservedSharedMemoryPerBlock: value = static_cast<int>(p.reservedSharedMemPerBlock); break;
    case cudaDevAttrWarpSize: value = p.warpSize; break;
    case cudaDevAttrMaxRegistersPerBlock: value = p.regsPerBlock; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: value = p.regsPerMultiprocessor; break;
    case cudaDevAttrMultiProcessorCount: value = p.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: value = p.minor; break;
    case cudaDevAttrL2CacheSize: value = p.l2CacheSize; break;
    case cudaDevAttrClockRate: value = 1000000; break;
    case cudaDevAttrMemoryClockRate: value = 1000000; break;
    case cudaDevAttrGlobalMemoryBusWidth: value = p.memoryBusWidth; break;
    case cudaDevAttrConcurrentKernels: value = p.concurrentKernels; break;
    case cudaDevAttrUnifiedAddressing: value = p.unifiedAddressing; break;
    case cudaDevAttrManagedMemory: value = p.managedMemory; break;
    case cudaDevAttrStreamPrioritiesSupported: value = 1; break;
    case cudaDevAttrMemoryPoolsSupported: value = 1; break;
    case cudaDevAttrPciBusId: value = p.pciBusID; break;
    case cudaDevAttrCooperativeLaunch: value = 0; break;
    default: value = 0; return static_cast<int>(attribute) > 0 && attribute < cudaDevAttrMax;
  }
  return true;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  CUDA_HOST_BEGIN();
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  *count = settings().device_count;
  return finish(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  CUDA_HOST_BEGIN();
  if (!valid_device(device)) return finish(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  CUDA_HOST_BEGIN();
  if (device == nullptr) return finish(cudaErrorInvalidValue);
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  CUDA_HOST_BEGIN();
  if (out == nullptr) return finish(cudaErrorInvalidValue);
  if (!valid_device(device)) return finish(cudaErrorInvalidDevice);
  *out = properties(device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  CUDA_HOST_BEGIN();
  if (!valid_device(device)) return finish(cudaErrorInvalidDevice);
  if (value == nullptr || !attribute_value(attribute, properties(device), *value)) return finish(cudaErrorInvalidValue);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  CUDA_HOST_BEGIN();
  if (id == nullptr || !valid_device(device)) return finish(cudaErrorInvalidValue);
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  CUDA_HOST_BEGIN();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  CUDA_HOST_BEGIN();
  Lock lock(runtime().mutex);
  if (const cudaError_t error = unsafe_call(); error != cudaSuccess) return finish(error);
  return finish(wait_device(lock, current_device()));
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  CUDA_HOST_BEGIN();
  if (can == nullptr) return finish(cudaErrorInvalidValue);
  if (!valid_device(device) || !valid_device(peer)) return finish(cudaErrorInvalidDevice);
  *can = device != peer && settings().peer_access;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  CUDA_HOST_BEGIN();
  if (!valid_device(peer) || peer == current_device()) return finish(cudaErrorInvalidDevice);
  const Lock lock(runtime().mutex);
  const bool fresh = runtime().device(current_device()).peers.insert(peer).second;
  return finish(fresh ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDriverGetVersion(int* version) {
  CUDA_HOST_BEGIN();
  *version = settings().driver_version != 0 ? settings().driver_version : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  CUDA_HOST_BEGIN();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// A sticky fault stays; any other error is cleared by the look.
cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error() = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  const Lock lock(runtime().mutex);
  const cudaError_t fault = runtime().device(current_device()).fault;
  return fault != cudaSuccess ? fault : last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CUDA_HOST_ERROR(name) \
  case name:                  \
    return #name;
#include "cudart/error_names.inc"
#undef CUDA_HOST_ERROR
    default: break;
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorLaunchTimeout: return "the launch timed out and was terminated";
    case cudaErrorNotSupported: return "operation not supported";
    default: return cudaGetErrorName(error);
  }
}

namespace {

// Captures, graphs and events go at once; streams must run dry first.
void drop_handles(Runtime& r) {
  for (const auto& capture : r.captures) {
    for (CUstream_st* member : capture->members) member->capture.reset();
    delete capture->graph;
  }
  r.captures.clear();
  for (CUgraph_st* graph : r.graphs) delete graph;
  for (CUgraphExec_st* exec : r.execs) delete exec;
  for (CUevent_st* event : r.events) delete event;
  r.graphs.clear();
  r.execs.clear();
  r.events.clear();
}

}  // namespace

std::size_t cuda_host::reset() {
  Runtime& r = runtime();
  Lock lock(r.mutex);
  while (!r.streams.empty()) stop_stream(lock, *r.streams.begin());
  drop_handles(r);
  const std::size_t leaked = r.memory.size();
  for (const auto& [base, allocation] : r.memory) free_allocation(allocation);
  r.memory.clear();
  r.devices.clear();
  r.injections.clear();
  r.calls.clear();
  r.max_dynamic_shared.clear();
  r.fault_text.clear();
  r.next_id = 1;  // equal seeds repeat equal schedules
  current_device() = 0;
  last_error() = cudaSuccess;
  settings() = initial_settings();
  return leaked;
}

cudaError_t cudaDeviceReset() {
  CUDA_HOST_BEGIN();
  return cudaDeviceSynchronize();
}
