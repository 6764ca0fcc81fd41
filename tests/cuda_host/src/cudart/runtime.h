// The state behind the emulated runtime API.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cuda_host/control.h"
#include "cudart/handles.h"
#include "cudart/quiet.h"

namespace cuda_host::rt {

enum class MemoryKind { Device, Pinned, Registered, Managed };

struct Allocation {
  char* base = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::Device;
  int device = 0;
  unsigned flags = 0;
  bool guarded = false;
};

struct Device {
  std::size_t used = 0;
  cudaError_t fault = cudaSuccess;  // sticky
  CUstream_st* legacy = nullptr;
  std::set<int> peers;
};

struct Injection {
  unsigned calls_left = 0;
  int code = 0;
};

class Runtime {
 public:
  std::mutex mutex;
  std::condition_variable changed;

  // All below: mutex held.
  std::vector<Device> devices;
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<CUgraph_st*> graphs;
  std::set<CUgraphExec_st*> execs;
  std::set<std::shared_ptr<Capture>> captures;
  std::map<const char*, Allocation> memory;
  std::unordered_map<const void*, int> max_dynamic_shared;
  std::multimap<std::string, Injection> injections;
  std::map<std::string, unsigned> calls;
  std::string fault_text;
  unsigned long long next_id = 1;

  Device& device(int index);
};

Runtime& runtime();
Settings initial_settings();  // the defaults, overridden by the environment

// Start and end of every emulated function. begin_call returns an injected or
// sticky error; finish records an error for cudaGetLastError.
cudaError_t begin_call(const char* function);
cudaError_t finish(cudaError_t error);
bool injected(const char* function, int& code);
int& current_device();
cudaError_t& last_error();

// A device-side fault: sticky, kept until reset().
void raise_fault(int device, cudaError_t code, const std::string& text);

// Streams. `resolve` maps the special handles; null when the handle is not live.
CUstream_st* resolve(cudaStream_t handle);
CUstream_st* create_stream(int device, unsigned flags, int priority);
void stop_stream(Lock& lock, CUstream_st* stream);

struct Request {
  const char* name = "";
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  std::function<void()> run;
  std::vector<OperationPtr> after = {};
};
// Queues, or records when the stream is captured (then *queued stays null).
cudaError_t enqueue(CUstream_st* stream, Request request, OperationPtr* queued = nullptr);
// For the libraries on top: takes the lock itself.
cudaError_t enqueue_on(cudaStream_t stream, Request request, OperationPtr* queued = nullptr);
cudaError_t wait_done(Lock& lock, const OperationPtr& operation);
cudaError_t wait_device(Lock& lock, int device);
void pause_randomly(std::uint64_t salt);

// Capture rules.
cudaError_t unsafe_call();  // cudaMalloc & co. while a capture forbids them
void break_capture(const std::shared_ptr<Capture>& capture, cudaError_t why);
void run_graph(const std::vector<CUgraphNode_st>& nodes, std::uint64_t seed);

// Memory.
const Allocation* find_memory(const void* pointer, bool end_counts = false);
bool on_device(const void* pointer, std::size_t bytes);  // device or managed, in bounds
bool device_can_reach(int device, const void* pointer);
cudaError_t allocate(void** pointer, std::size_t bytes, MemoryKind kind, unsigned flags);
cudaError_t release(void* pointer, MemoryKind kind);
void free_allocation(const Allocation& allocation);

// Locks by itself; for the libraries' argument checks.
bool is_device_range(const void* pointer, std::size_t bytes);

}  // namespace cuda_host::rt

#define CUDA_HOST_BEGIN() \
  if (const cudaError_t begun = cuda_host::rt::begin_call(__func__); begun != cudaSuccess) return begun
