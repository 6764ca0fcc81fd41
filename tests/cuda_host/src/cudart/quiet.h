// ThreadSanitizer must see the order that CUDA promises (stream order, events,
// synchronising calls) and nothing else; otherwise our own mutex would hide
// every missing event wait. So the runtime's internals are invisible to it, and
// release/acquire marks state the promised order.
#pragma once

#include <condition_variable>
#include <mutex>

#ifdef CUDA_HOST_TSAN
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace cuda_host::rt {

class Quiet {
 public:
  Quiet() {
#ifdef CUDA_HOST_TSAN
    ++depth;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
#endif
  }
  ~Quiet() {
#ifdef CUDA_HOST_TSAN
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    --depth;
#endif
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

  // How many Quiet objects this OS thread has; order marks must pierce them.
  static inline constinit thread_local int depth = 0;
};

// Orders everything before mark_release(x) ahead of everything after mark_acquire(x).
void mark_release(void* token);
void mark_acquire(void* token);

// Holds the runtime's one mutex, quietly.
class Lock {
 public:
  explicit Lock(std::mutex& mutex) : lock_(mutex) {}
  void unlock() { lock_.unlock(); }
  void lock() { lock_.lock(); }
  std::unique_lock<std::mutex>& get() { return lock_; }

 private:
  Quiet quiet_;  // first in, last out
  std::unique_lock<std::mutex> lock_;
};

}  // namespace cuda_host::rt
