// Scheduling: threads start lazily on one fiber, and only a thread that waits
// keeps its stack. A kernel without barriers is therefore a plain loop.
#include "simt/block_runner.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>

constinit thread_local uint3 threadIdx = {0, 0, 0};
constinit thread_local uint3 blockIdx = {0, 0, 0};
constinit thread_local dim3 blockDim = {1, 1, 1};
constinit thread_local dim3 gridDim = {1, 1, 1};

namespace cuda_host::simt {

namespace {
constinit thread_local BlockRunner* active_runner = nullptr;
}

BlockRunner* BlockRunner::active() { return active_runner; }

BlockRunner::BlockRunner(std::size_t stack_bytes) : stack_bytes_(stack_bytes), shared_(nullptr, std::free) {}

void BlockRunner::begin_launch(const Work& work) {
  active_runner = this;
  work_ = &work;
  main_ = std::make_unique<Context>();
  count_ = work.block.x * work.block.y * work.block.z;
  threads_.assign(count_, Thread{});
  // No growth later: a reallocation inside a fiber would look like a race to TSan.
  order_.reserve(count_);
  ready_.reserve(2 * std::size_t{count_} + 64);
  fibers_.reserve(1024);
  free_.reserve(1024);
  // To TSan a fiber's creator is ordered before it: no CUDA thread may create another.
  while (thread_sanitized && fibers_.size() < count_) {
    fibers_.push_back(std::make_unique<Fiber>(stack_bytes_, &BlockRunner::fiber_entry));
  }
  for (unsigned t = 0; t < count_; ++t) {
    threads_[t].index = {t % work.block.x, t / work.block.x % work.block.y, t / (work.block.x * work.block.y)};
  }
  // Exactly the bytes asked for, so that AddressSanitizer sees an overrun.
  void* shared = nullptr;
  if (work.shared_bytes > 0 && posix_memalign(&shared, 128, work.shared_bytes) != 0) std::abort();
  shared_.reset(static_cast<unsigned char*>(shared));
  blockDim = work.block;
  gridDim = work.grid;
}

void BlockRunner::end_launch() {
  shared_.reset();
  main_.reset();
  work_ = nullptr;
  active_runner = nullptr;
}

// Warps stay together so that a kernel with shuffles needs few live stacks; the
// order of the warps, and of the lanes in a warp, is what varies.
void BlockRunner::make_order() {
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), std::uint16_t{0});
  if (work_->settings.thread_order == ThreadOrder::Ascending) return;
  if (work_->settings.thread_order == ThreadOrder::Descending) {
    std::reverse(order_.begin(), order_.end());
    return;
  }
  const unsigned warps = (count_ + 31) / 32;
  std::array<std::uint8_t, 32> warp_order, lane_order;
  std::iota(warp_order.begin(), warp_order.end(), std::uint8_t{0});
  std::iota(lane_order.begin(), lane_order.end(), std::uint8_t{0});
  std::shuffle(warp_order.begin(), warp_order.begin() + warps, random_);
  std::shuffle(lane_order.begin(), lane_order.end(), random_);
  auto out = order_.begin();
  for (unsigned w = 0; w < warps; ++w) {
    for (const unsigned lane : lane_order) {
      const unsigned thread = warp_order[w] * 32U + lane;
      if (thread < count_) *out++ = static_cast<std::uint16_t>(thread);
    }
  }
}

std::string BlockRunner::run_block(const Work& work, uint3 block) {
  const unsigned linear = block.x + work.grid.x * (block.y + work.grid.y * block.z);
  random_.seed(static_cast<unsigned>(work.seed * 2654435761U + linear * 40503U + 1U));
  make_order();
  ready_.clear();
  next_start_ = next_ready_ = 0;
  done_ = at_block_ = 0;
  warp_waiting_.fill(0);
  for (Thread& t : threads_) t.state = State::Unstarted;
  free_.clear();
  for (auto& f : fibers_) free_.push_back(f.get());
  if (shared_) std::memset(shared_.get(), work.settings.fill, work.shared_bytes);
  blockIdx = block;
  fault_.clear();
  started_ = std::chrono::steady_clock::now();

  while (done_ < count_ && fault_.empty()) {
    sanitizer_release(&start_token_);
    leave(*main_);
    sanitizer_acquire(&done_token_);
    if (done_ < count_ && fault_.empty() && !resolve_stall()) fault_ = describe_stall();
  }
  if (!fault_.empty()) {
    // Parked stacks are dropped, not unwound: destructors in kernels do not run.
    for (auto& f : fibers_) f->context.restart();
  }
  return fault_;
}

Fiber* BlockRunner::free_fiber() {
  if (free_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(stack_bytes_, &BlockRunner::fiber_entry));
    return fibers_.back().get();
  }
  Fiber* f = free_.back();
  free_.pop_back();
  return f;
}

void BlockRunner::fiber_entry() {
  Context::entered();
  // A runner and its fibers stay on one OS thread, so this stays valid.
  BlockRunner* runner = active_runner;
  runner->fiber_loop(*runner->entering_);
}

// Continues, in this order: a thread that became ready, a thread not yet
// started, the scheduler. Returns when `from` is switched back to.
void BlockRunner::leave(Context& from, bool start_new_first) {
  const bool can_start = next_start_ < order_.size();
  if (next_ready_ < ready_.size() && !(start_new_first && can_start)) {
    const unsigned t = ready_[next_ready_++];
    if (next_ready_ == ready_.size()) {
      ready_.clear();
      next_ready_ = 0;
    }
    enter_thread(t);
    Context& target = threads_[t].fiber->context;
    if (&target != &from) from.switch_to(target);
  } else if (can_start) {
    Fiber* f = free_fiber();
    entering_ = f;
    if (&f->context != &from) from.switch_to(f->context);
  } else {
    if (&from != main_.get()) from.switch_to(*main_);
  }
}

void BlockRunner::enter_thread(unsigned thread) {
  current_ = thread;
  threads_[thread].state = State::Running;
  threadIdx = threads_[thread].index;
}

void BlockRunner::fiber_loop(Fiber& self) {
  for (;;) {
    sanitizer_acquire(&start_token_);
    do {
      run_thread(self, order_[next_start_++]);
    } while (!thread_sanitized && next_ready_ >= ready_.size() && next_start_ < order_.size() && fault_.empty());
    sanitizer_release(&done_token_);
    // Under TSan a fiber runs one thread per block: two threads on one
    // fiber would look ordered.
    if (!thread_sanitized) free_.push_back(&self);
    leave(self.context);
  }
}

void BlockRunner::run_thread(Fiber& self, unsigned thread) {
  threads_[thread].fiber = &self;
  enter_thread(thread);
  std::string escaped;
  try {
    (*work_->body)();
  } catch (const std::exception& e) {
    escaped = std::string("exception left a kernel: ") + e.what();
  }
  // Outside the handler: abandon() does not return, and a handler must be left.
  if (!escaped.empty()) note_fault(escaped + where());
  if (!fault_.empty()) abandon();
  threads_[thread].state = State::Done;
  ++done_;
}

void BlockRunner::yield() {
  if (std::chrono::steady_clock::now() - started_ > std::chrono::milliseconds(work_->settings.block_timeout_ms)) {
    note_fault(
        "a thread spins for longer than block_timeout_ms (a lock or flag that no running "
        "thread releases? blocks do not run concurrently)" +
        where());
    abandon();
  }
  Thread& self = threads_[current_];
  self.state = State::Ready;
  ready_.push_back(static_cast<std::uint16_t>(current_));
  leave(self.fiber->context, true);
}

std::string BlockRunner::where() const {
  const Thread& t = threads_[current_];
  auto triple = [](unsigned x, unsigned y, unsigned z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
  };
  return " [block " + triple(blockIdx.x, blockIdx.y, blockIdx.z) + ", thread " + triple(t.index.x, t.index.y, t.index.z) + "]";
}

void BlockRunner::note_fault(const std::string& message) {
  if (fault_.empty()) fault_ = message;
}

// A separate step, so that no temporary string is alive on the lost stack.
void BlockRunner::abandon() {
  sanitizer_release(&done_token_);
  threads_[current_].fiber->context.switch_to(*main_);
  std::abort();  // never continued
}

}  // namespace cuda_host::simt
