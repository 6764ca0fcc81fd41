#pragma once
// Memory, streams and events of one kind of hardware. No kernels and no collectives in here.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/plan/plan.h"

namespace zeroplan {

// A point in a stream's work. CUDA: cudaEvent_t. Reusable: each record starts a new occasion.
class Event {
 public:
  virtual ~Event() = default;
};

// Commands that a stream holds at most; issuing one more blocks.
inline constexpr int kStreamCapacity = 1024;

// Work that a stream has kept, to be issued again as a whole. CUDA: cudaGraphExec_t.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work in order. CUDA: cudaStream_t. A failed stream keeps its error, skips later work and rethrows at wait and synchronize.
class Stream {
 public:
  using Task = void (*)(void* argument);
  virtual ~Stream() = default;
  // Carries out task(argument) in the stream's order; the argument must live until then. No allocation. On the CPU the task is the work,
  // and runs when all earlier work is done; on a device with work of its own it runs now and enqueues its work.
  virtual void launch(Task task, void* argument) = 0;
  // Runs task(argument) on some thread of the host when all earlier work is done: cudaLaunchHostFunc. The task must not
  // throw, nor use the device.
  virtual void host_call(Task task, void* argument) = 0;
  // Of no bytes the addresses may be null.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // cudaMemcpyAsync
  virtual void fill(void* to, int value, int64_t bytes) = 0;         // cudaMemsetAsync
  // *word = value when all earlier work is done; any thread may read it at any time. `word` lies in memory of alloc_host.
  virtual void mark(uint32_t* word, uint32_t value) = 0;
  virtual void record(Event& event) = 0;      // cudaEventRecord
  virtual void wait(Event& event) = 0;        // later work of this stream starts after the event's latest record: cudaStreamWaitEvent
                                              // a failed stream completes its events, and whoever waits for them fails with its error
  virtual void synchronize() = 0;             // returns when all work is done; rethrows the stream's error
  virtual void* native() { return nullptr; }  // cudaStream_t
  // What is issued in between is kept instead of carried out: cudaStreamBeginCapture, cudaStreamEndCapture. No synchronize in between, no
  // wait and no record. Null where the device issues work without cost: then it was carried out.
  virtual void begin_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }
  virtual void replay(Recording&) {}  // cudaGraphLaunch
};

// Bytes that are freed with the object. Aligned to kArenaAlignment at least.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

struct DeviceProperties {
  std::string name;
  int64_t memory_bytes = 0;
  // Kernels are the host's own code: it may read and write the device's memory, and launch() is the work itself.
  bool host = true;
};

class Device {
 public:
  virtual ~Device() = default;
  // Before anything else on each thread that uses the device or its streams: cudaSetDevice.
  virtual void use() {}
  virtual std::unique_ptr<DeviceMemory> alloc(int64_t bytes) = 0;       // throws Error with the bytes asked for
  virtual std::unique_ptr<DeviceMemory> alloc_host(int64_t bytes) = 0;  // the host's, which copies reach fastest: cudaHostAlloc
  virtual std::unique_ptr<Stream> new_stream(StreamKind kind) = 0;
  virtual std::unique_ptr<Event> new_event() = 0;
  virtual DeviceProperties properties() const = 0;
};

// Compute runs on the issuing thread; gather and reduce streams are worker threads that block, never spin.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace zeroplan
