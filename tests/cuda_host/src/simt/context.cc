#include "simt/context.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CUDA_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifndef CUDA_HOST_UCONTEXT
// Saves the callee-saved registers on the old stack and restores the new one's.
// swapcontext would add two system calls (it keeps the signal mask).
extern "C" void cuda_host_switch_stack(void** save_here, void* continue_there);
asm(R"(
.text
.p2align 4
.globl cuda_host_switch_stack
.type cuda_host_switch_stack,@function
cuda_host_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuda_host_switch_stack,.-cuda_host_switch_stack
)");
#endif

namespace cuda_host::simt {

Context::Context() {
#ifdef __SANITIZE_ADDRESS__
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack_bottom_, &stack_bytes_);
  pthread_attr_destroy(&attributes);
#endif
#ifdef CUDA_HOST_TSAN
  tsan_fiber_ = __tsan_get_current_fiber();
#endif
}

Context::Context(std::size_t stack_bytes, void (*entry)()) : entry_(entry) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  stack_bytes_ = (stack_bytes + page - 1) / page * page;
  mapping_bytes_ = stack_bytes_ + page;
  mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping_ == MAP_FAILED) {
    std::perror("cuda_host: mmap of a fiber stack");
    std::abort();
  }
  // The lowest page stays inaccessible: an overflow is a clean SIGSEGV.
  mprotect(mapping_, page, PROT_NONE);
  stack_bottom_ = static_cast<char*>(mapping_) + page;
  prepare();
}

Context::~Context() {
#ifdef CUDA_HOST_TSAN
  if (tsan_fiber_ != nullptr && entry_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
#endif
#ifdef __SANITIZE_ADDRESS__
  if (mapping_ != nullptr) __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void Context::restart() {
#ifdef CUDA_HOST_TSAN
  if (tsan_fiber_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
  prepare();
}

void Context::prepare() {
  fake_stack_ = nullptr;
#ifdef CUDA_HOST_TSAN
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
#ifdef CUDA_HOST_UCONTEXT
  getcontext(&ucontext_);
  ucontext_.uc_stack.ss_sp = stack_bottom_;
  ucontext_.uc_stack.ss_size = stack_bytes_;
  ucontext_.uc_link = nullptr;
  makecontext(&ucontext_, entry_, 0);
#else
  // Six registers, the entry point as return address, and an end mark for
  // unwinders. The ABI wants (rsp + 8) % 16 == 0 on entry.
  // Stacks start at different offsets in the page: at equal ones their hot lines
  // would share a few sets of the first-level cache.
  static std::atomic<unsigned> serial{0};
  const std::size_t stagger = serial.fetch_add(1, std::memory_order_relaxed) * 320U % 4096U;
  auto* top = reinterpret_cast<std::uint64_t*>(static_cast<char*>(stack_bottom_) + stack_bytes_ - stagger);
  top -= 10;
  for (int i = 0; i < 10; ++i) top[i] = 0;
  top[6] = reinterpret_cast<std::uint64_t>(entry_);
  stack_pointer_ = top;
  static_assert(sizeof(void*) == 8);
#endif
}

// Functions that change stacks must not be instrumented: TSan would push the
// entry on one shadow stack and pop it from another.
#ifdef CUDA_HOST_TSAN
__attribute__((no_sanitize("thread")))
#endif
void Context::switch_to(Context& target) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fake_stack_, target.stack_bottom_, target.stack_bytes_);
#endif
#ifdef CUDA_HOST_TSAN
  // No implied order: the barriers say what happens before what.
  __tsan_switch_to_fiber(target.tsan_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef CUDA_HOST_UCONTEXT
  swapcontext(&ucontext_, &target.ucontext_);
#else
  cuda_host_switch_stack(&stack_pointer_, target.stack_pointer_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Context::entered() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

void sanitizer_release([[maybe_unused]] void* token) {
#ifdef CUDA_HOST_TSAN
  __tsan_release(token);
#endif
}

void sanitizer_acquire([[maybe_unused]] void* token) {
#ifdef CUDA_HOST_TSAN
  __tsan_acquire(token);
#endif
}

}  // namespace cuda_host::simt
