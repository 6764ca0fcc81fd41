// Settings, fault injection, error bookkeeping.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "cudart/runtime.h"

namespace cuda_host {

namespace {

template <class T>
void from_environment(const char* name, T& field) {
  if (const char* text = std::getenv(name)) field = static_cast<T>(std::strtoull(text, nullptr, 0));
}

}  // namespace

namespace rt {

Settings initial_settings() {
  Settings s;
  int order = static_cast<int>(s.thread_order);
  from_environment("CUDA_HOST_DEVICE_COUNT", s.device_count);
  from_environment("CUDA_HOST_DEVICE_MEMORY", s.device_memory);
  from_environment("CUDA_HOST_OTHER_CARD", s.other_card);
  from_environment("CUDA_HOST_PEER_ACCESS", s.peer_access);
  from_environment("CUDA_HOST_DRIVER_VERSION", s.driver_version);
  from_environment("CUDA_HOST_NCCL_VERSION", s.nccl_version);
  from_environment("CUDA_HOST_OTHER_PRODUCTS", s.other_products);
  from_environment("CUDA_HOST_OWN_PRODUCTS_ONLY", s.own_products_only);
  from_environment("CUDA_HOST_SEED", s.seed);
  from_environment("CUDA_HOST_SHUFFLE_BLOCKS", s.shuffle_blocks);
  from_environment("CUDA_HOST_THREAD_ORDER", order);
  from_environment("CUDA_HOST_BLOCK_WORKERS", s.block_workers);
  from_environment("CUDA_HOST_STRICT_BARRIERS", s.strict_barriers);
  from_environment("CUDA_HOST_FIBER_STACK", s.fiber_stack);
  from_environment("CUDA_HOST_MAX_DELAY_US", s.max_delay_us);
  from_environment("CUDA_HOST_HANG_TIMEOUT_MS", s.hang_timeout_ms);
  from_environment("CUDA_HOST_BLOCK_TIMEOUT_MS", s.block_timeout_ms);
  from_environment("CUDA_HOST_NCCL_TIMEOUT_MS", s.nccl_timeout_ms);
  from_environment("CUDA_HOST_CHECK_POINTERS", s.check_pointers);
  from_environment("CUDA_HOST_GUARD_MEMORY", s.guard_memory);
  from_environment("CUDA_HOST_PRINT_FAULTS", s.print_faults);
  s.thread_order = static_cast<ThreadOrder>(order);
  return s;
}

}  // namespace rt

Settings& settings() {
  static Settings current = rt::initial_settings();
  return current;
}

namespace rt {

Runtime& runtime() {
  // Never destroyed: workers may outlive main's statics.
  static Runtime* instance = new Runtime;
  return *instance;
}

Device& Runtime::device(int index) {
  if (devices.size() <= static_cast<std::size_t>(index)) devices.resize(static_cast<std::size_t>(index) + 1);
  return devices[static_cast<std::size_t>(index)];
}

int& current_device() {
  static thread_local int device = 0;
  return device;
}

cudaError_t& last_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

bool injected(const char* function, int& code) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  ++r.calls[function];
  auto [it, end] = r.injections.equal_range(function);
  bool hit = false;
  while (it != end) {
    if (--it->second.calls_left == 0) {
      code = it->second.code;
      hit = true;
      it = r.injections.erase(it);
    } else {
      ++it;
    }
  }
  return hit;
}

cudaError_t begin_call(const char* function) {
  int code = 0;
  if (injected(function, code)) return finish(static_cast<cudaError_t>(code));
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  return finish(r.device(current_device()).fault);
}

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

void raise_fault(int device, cudaError_t code, const std::string& text) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (r.device(device).fault == cudaSuccess) {
    r.device(device).fault = code;
    r.fault_text = text;
    if (settings().print_faults) std::fprintf(stderr, "cuda_host: %s\n", text.c_str());
  }
  r.changed.notify_all();
}

}  // namespace rt

void fail_call(const std::string& function, unsigned nth, int code) {
  rt::Runtime& r = rt::runtime();
  const rt::Lock lock(r.mutex);
  r.injections.emplace(function, rt::Injection{nth, code});
}

unsigned call_count(const std::string& function) {
  rt::Runtime& r = rt::runtime();
  const rt::Lock lock(r.mutex);
  return r.calls[function];
}

std::string last_fault() {
  rt::Runtime& r = rt::runtime();
  const rt::Lock lock(r.mutex);
  return r.fault_text;
}

}  // namespace cuda_host
