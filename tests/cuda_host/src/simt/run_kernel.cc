#include "simt/run_kernel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

namespace cuda_host::simt {

namespace {

// A permutation of 0..count-1 that needs no table: i -> (i * step + shift) mod count.
class BlockOrder {
 public:
  BlockOrder(std::uint64_t count, std::uint64_t seed, bool shuffle) : count_(count) {
    if (!shuffle || count < 2) return;
    std::minstd_rand random(static_cast<unsigned>(seed) | 1U);
    shift_ = random() % count;
    do {
      step_ = random() % count;
    } while (std::gcd(step_, count) != 1);
  }
  std::uint64_t operator()(std::uint64_t i) const { return (i * step_ + shift_) % count_; }

 private:
  std::uint64_t count_;
  std::uint64_t step_ = 1;
  std::uint64_t shift_ = 0;
};

std::size_t stack_bytes(const Settings& settings) {
  if (settings.fiber_stack != 0) return settings.fiber_stack;
  return address_sanitized || thread_sanitized ? 256 * 1024 : 64 * 1024;
}

BlockRunner& runner_of_this_thread(std::size_t bytes) {
  static thread_local std::unique_ptr<BlockRunner> runner;
  if (!runner || runner->stack_bytes() != bytes) runner = std::make_unique<BlockRunner>(bytes);
  return *runner;
}

}  // namespace

std::string run_kernel(const Work& work) {
  const std::uint64_t blocks = std::uint64_t{work.grid.x} * work.grid.y * work.grid.z;
  const BlockOrder order(blocks, work.seed, work.settings.shuffle_blocks);
  std::atomic<bool> stop{false};
  const std::uint64_t workers = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(work.settings.block_workers, 1)), 1, blocks);
  std::mutex fault_mutex;
  std::string fault;

  // A fixed share for each worker: blocks that race run on different OS threads
  // however slowly a helper starts.
  auto run_share = [&](std::uint64_t worker) {
    BlockRunner& runner = runner_of_this_thread(stack_bytes(work.settings));
    runner.begin_launch(work);
    for (std::uint64_t i = worker; i < blocks && !stop; i += workers) {
      const std::uint64_t b = order(i);
      const uint3 index = {static_cast<unsigned>(b % work.grid.x), static_cast<unsigned>(b / work.grid.x % work.grid.y),
                           static_cast<unsigned>(b / work.grid.x / work.grid.y)};
      std::string text = runner.run_block(work, index);
      if (text.empty()) continue;
      stop = true;
      const std::lock_guard lock(fault_mutex);
      if (fault.empty()) fault = std::move(text);
    }
    runner.end_launch();
  };

  std::vector<std::thread> helpers;
  for (std::uint64_t w = 1; w < workers; ++w) helpers.emplace_back(run_share, w);
  run_share(0);
  for (std::thread& t : helpers) t.join();
  return fault;
}

}  // namespace cuda_host::simt
