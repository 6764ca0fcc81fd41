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

// Work in order. CUDA: cudaStream_t. A failed stream keeps its error, skips later work and rethrows at wait and synchronize.
class Stream {
 public:
  using Task = void (*)(void* argument);
  virtual ~Stream() = default;
  // Runs task(argument) when all earlier work is done; the argument must live until then. No allocation.
  virtual void launch(Task task, void* argument) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // cudaMemcpyAsync
  virtual void fill(void* to, int value, int64_t bytes) = 0;         // cudaMemsetAsync
  virtual void record(Event& event) = 0;                             // cudaEventRecord
  virtual void wait(Event& event) = 0;  // later work of this stream starts after the event's latest record: cudaStreamWaitEvent
                                        // a failed stream completes its events, and whoever waits for them fails with its error
  virtual void synchronize() = 0;       // returns when all work is done; rethrows the stream's error
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
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::unique_ptr<DeviceMemory> alloc(int64_t bytes) = 0;  // throws Error with the bytes asked for
  virtual std::unique_ptr<Stream> new_stream(StreamKind kind) = 0;
  virtual std::unique_ptr<Event> new_event() = 0;
  virtual DeviceProperties properties() const = 0;
};

// Compute runs on the issuing thread; gather and reduce streams are worker threads that block, never spin.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace zeroplan
