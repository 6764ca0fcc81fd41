// Runs the blocks of one launch, one after the other, on the calling OS thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda_host/control.h"
#include "cuda_host/simt.h"
#include "simt/context.h"

namespace cuda_host::simt {

// What one launch asks for; shared by all its workers.
struct Work {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  const std::function<void()>* body = nullptr;
  Settings settings;
  std::uint64_t seed = 0;
};

enum class State : std::uint8_t { Unstarted, Running, Ready, AtBlock, AtWarp, Done };

struct WarpRequest {
  WarpOp op = WarpOp::Sync;
  unsigned mask = 0;
  unsigned source_lane = 0;
  std::uint64_t value = 0;
};

struct Fiber;

struct Thread {
  State state = State::Unstarted;
  Fiber* fiber = nullptr;
  uint3 index = {};
  WarpRequest request;
  std::uint64_t result = 0;
  const char* waits_for = "";
  Site site;
  BlockOp block_op = BlockOp::Sync;
  int predicate = 0;
  char* leave_token = nullptr;
};

struct Fiber {
  Fiber(std::size_t stack_bytes, void (*entry)()) : context(stack_bytes, entry) {}
  Context context;
};

class BlockRunner {
 public:
  explicit BlockRunner(std::size_t stack_bytes);

  // Returns the fault text, empty when the block finished.
  std::string run_block(const Work& work, uint3 block);

  // Reuses the stacks of earlier launches.
  void begin_launch(const Work& work);
  void end_launch();

  // Called from inside a kernel.
  int block_barrier(BlockOp op, int predicate, const char* name, const Site& site);
  std::uint64_t warp_exchange(const WarpRequest& request, const char* name, const Site& site);
  void yield();
  std::string where() const;                    // block and thread, for messages
  void note_fault(const std::string& message);  // the first one counts
  [[noreturn]] void abandon();                  // leaves the calling thread for good
  void* dynamic_shared() const { return shared_.get(); }
  unsigned current() const { return current_; }
  std::size_t stack_bytes() const { return stack_bytes_; }
  unsigned existing_lanes(unsigned warp) const;  // a mask

  static BlockRunner* active();

 private:
  static void fiber_entry();
  void fiber_loop(Fiber& self);
  void run_thread(Fiber& self, unsigned thread);

  void make_order();
  Fiber* free_fiber();
  void leave(Context& from, bool start_new_first = false);
  void enter_thread(unsigned thread);

  bool resolve_stall();
  void release_block();
  void check_barrier_sites();
  void check_warp_sites(unsigned warp, unsigned lanes);
  void release_warp(unsigned warp, unsigned lanes, unsigned running);
  void exchange(unsigned warp, unsigned lanes);
  std::uint64_t reduce(unsigned warp, unsigned mask, const WarpRequest& request) const;
  std::string describe_stall() const;
  std::string describe_wait(unsigned thread) const;

  std::size_t stack_bytes_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_;
  Fiber* entering_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<std::uint16_t> order_, ready_;
  std::size_t next_start_ = 0, next_ready_ = 0;
  unsigned count_ = 0, done_ = 0, at_block_ = 0, current_ = 0;
  std::array<unsigned, 32> warp_waiting_ = {};  // lanes at a warp operation
  std::unique_ptr<unsigned char, void (*)(void*)> shared_;
  const Work* work_ = nullptr;
  std::unique_ptr<Context> main_;
  std::minstd_rand random_;
  std::string fault_;
  std::chrono::steady_clock::time_point started_;
  // Addresses that tell the thread sanitizer what is ordered. Leaving a barrier
  // has several tokens: with one, a late leaver would seem to be ordered after
  // what an early leaver did next.
  struct Meeting {
    char arrive = 0;
    std::array<char, 8> leave = {};
    unsigned count = 0;
  };
  char start_token_ = 0, done_token_ = 0;
  Meeting block_meeting_;
  std::array<Meeting, 32> warp_meetings_;
  void complete(Meeting& meeting);
  char* leave_token(Meeting& meeting) { return &meeting.leave[meeting.count % 8]; }
};

}  // namespace cuda_host::simt
