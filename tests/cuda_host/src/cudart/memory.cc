// The table of allocations: every pointer check starts here.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "cudart/runtime.h"

namespace cuda_host {
namespace rt {

namespace {

// One protection key covers all guarded device memory. Access rights are per
// OS thread: stream workers have them, the threads of the program do not.
int guard_key() {
  static const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  return key;
}

class DeviceAccess {
 public:
  explicit DeviceAccess(bool needed) : key_(needed ? guard_key() : -1) {
    if (key_ < 0) return;
    before_ = static_cast<unsigned>(pkey_get(key_));
    pkey_set(key_, 0);
  }
  ~DeviceAccess() {
    if (key_ >= 0) pkey_set(key_, before_);
  }
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  int key_;
  unsigned before_ = 0;
};

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// The block ends at an inaccessible page, up to the 256-byte alignment.
char* map_guarded(std::size_t bytes) {
  const std::size_t page = page_size();
  const std::size_t padded = (bytes + 255) / 256 * 256;
  const std::size_t body = (padded + page - 1) / page * page;
  void* mapping = mmap(nullptr, body + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  pkey_mprotect(mapping, body, PROT_READ | PROT_WRITE, guard_key());
  return static_cast<char*>(mapping) + (body - padded);
}

void unmap_guarded(const Allocation& a) {
  const std::size_t page = page_size();
  const std::size_t padded = (a.bytes + 255) / 256 * 256;
  const std::size_t body = (padded + page - 1) / page * page;
  munmap(a.base - (body - padded), body + page);
}

}  // namespace

void allow_device_access() {
  if (settings().guard_memory && guard_key() >= 0) pkey_set(guard_key(), 0);
}

const Allocation* find_memory(const void* pointer, bool end_counts) {
  auto& memory = runtime().memory;
  auto it = memory.upper_bound(static_cast<const char*>(pointer));
  if (it == memory.begin()) return nullptr;
  --it;
  const Allocation& a = it->second;
  const char* end = a.base + a.bytes + (end_counts ? 1 : 0);
  return static_cast<const char*>(pointer) < end ? &a : nullptr;
}

bool on_device(const void* pointer, std::size_t bytes) {
  const Allocation* a = find_memory(pointer);
  if (a == nullptr || (a->kind != MemoryKind::Device && a->kind != MemoryKind::Managed)) return false;
  return static_cast<const char*>(pointer) + bytes <= a->base + a->bytes;
}

bool is_device_range(const void* pointer, std::size_t bytes) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  return bytes == 0 || on_device(pointer, bytes);
}

bool device_can_reach(int device, const void* pointer) {
  if (pointer == nullptr) return true;
  // One past the end is fine: an empty slice at the end of a buffer is legal.
  const Allocation* a = find_memory(pointer, true);
  if (a == nullptr) return false;
  return a->kind != MemoryKind::Device || a->device == device || runtime().device(device).peers.contains(a->device);
}

cudaError_t allocate(void** pointer, std::size_t bytes, MemoryKind kind, unsigned flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  Runtime& r = runtime();
  Device& device = r.device(current_device());
  const bool on_card = kind == MemoryKind::Device || kind == MemoryKind::Managed;
  if (on_card && device.used + bytes > settings().device_memory) return cudaErrorMemoryAllocation;
  const bool guarded = kind == MemoryKind::Device && settings().guard_memory && guard_supported();
  void* base = nullptr;
  // Plain malloc memory, so that AddressSanitizer knows its exact bounds.
  if (guarded) {
    base = map_guarded(bytes);
  } else if (posix_memalign(&base, 256, bytes) != 0) {
    base = nullptr;
  }
  if (base == nullptr) return cudaErrorMemoryAllocation;
  {
    const DeviceAccess access(guarded);
    std::memset(base, settings().fill, bytes);
  }
  if (on_card) device.used += bytes;
  r.memory[static_cast<char*>(base)] = {static_cast<char*>(base), bytes, kind, current_device(), flags, guarded};
  *pointer = base;
  return cudaSuccess;
}

void free_allocation(const Allocation& a) {
  if (a.kind == MemoryKind::Device || a.kind == MemoryKind::Managed) {
    runtime().device(a.device).used -= a.bytes;
  }
  if (a.kind == MemoryKind::Registered) return;
  if (a.guarded) {
    unmap_guarded(a);
  } else {
    std::free(a.base);
  }
}

cudaError_t release(void* pointer, MemoryKind kind) {
  Runtime& r = runtime();
  const auto it = r.memory.find(static_cast<char*>(pointer));
  if (it == r.memory.end()) return cudaErrorInvalidValue;
  const MemoryKind actual = it->second.kind;
  const bool matches = actual == kind || (kind == MemoryKind::Device && actual == MemoryKind::Managed);
  if (!matches) return cudaErrorInvalidValue;
  const Allocation a = it->second;
  r.memory.erase(it);
  free_allocation(a);
  return cudaSuccess;
}

}  // namespace rt

bool guard_supported() { return rt::guard_key() >= 0; }

std::size_t live_allocations() {
  rt::Runtime& r = rt::runtime();
  const rt::Lock lock(r.mutex);
  return r.memory.size();
}

std::size_t device_bytes_in_use(int device) {
  rt::Runtime& r = rt::runtime();
  const rt::Lock lock(r.mutex);
  return r.device(device).used;
}

}  // namespace cuda_host
