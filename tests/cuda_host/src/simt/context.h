// A stack that can be switched to, with the notes the sanitizers need.
#pragma once

#include <cstddef>

#ifndef __x86_64__
#define CUDA_HOST_UCONTEXT 1
#endif
#ifdef CUDA_HOST_UCONTEXT
#include <ucontext.h>
#endif

#if defined(CUDA_HOST_TSAN)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

namespace cuda_host::simt {

class Context {
 public:
  Context();  // stands for the calling OS thread's own stack
  Context(std::size_t stack_bytes, void (*entry)());
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Forgets whatever ran here; the next switch enters `entry` afresh.
  void restart();

  // Saves the running context in *this and continues `target`.
  void switch_to(Context& target);

  // First thing to do on a stack that has just been entered for the first time.
  static void entered();

 private:
  void prepare();

  void* stack_pointer_ = nullptr;
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void (*entry_)() = nullptr;
  void* fake_stack_ = nullptr;  // AddressSanitizer
  void* tsan_fiber_ = nullptr;  // ThreadSanitizer
#ifdef CUDA_HOST_UCONTEXT
  ucontext_t ucontext_ = {};
#endif
};

// Orders everything before release(x) ahead of everything after acquire(x).
void sanitizer_release(void* token);
void sanitizer_acquire(void* token);

}  // namespace cuda_host::simt
