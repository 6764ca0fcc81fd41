// The compute stream: everything happens on the thread that issues it.
#include <omp.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/device/cpu_device.h"

namespace zeroplan {
namespace {

class InlineStream : public Stream {
 public:
  explicit InlineStream(int threads) : threads_(threads) {}

  void launch(Task task, void* argument) override {
    adopt_thread();
    run([&] { task(argument); });
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) run([&] { std::memmove(to, from, static_cast<size_t>(bytes)); });
  }
  void fill(void* to, int value, int64_t bytes) override {
    if (bytes > 0) run([&] { std::memset(to, value, static_cast<size_t>(bytes)); });
  }
  void host_call(Task task, void* argument) override { launch(task, argument); }
  void mark(uint32_t* word, uint32_t value) override {
    run([&] { std::atomic_ref(*word).store(value, std::memory_order_release); });
  }
  void record(Event& event) override {
    auto& e = static_cast<CpuEvent&>(event);
    e.finish(e.issue(), error_);
  }
  void wait(Event& event) override {
    rethrow();
    auto& e = static_cast<CpuEvent&>(event);
    error_ = e.await(e.latest());
    rethrow();
  }
  void synchronize() override { rethrow(); }

 private:
  template <typename Fn>
  void run(Fn&& work) {
    if (error_) return;
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  // The number of OpenMP threads belongs to the issuing thread.
  void adopt_thread() {
    if (owner_ == std::this_thread::get_id()) return;
    owner_ = std::this_thread::get_id();
    omp_set_num_threads(threads_);
  }

  int threads_;
  std::thread::id owner_;
  std::exception_ptr error_;
};

}  // namespace

std::unique_ptr<Stream> make_inline_stream(int threads) { return std::make_unique<InlineStream>(threads); }

}  // namespace zeroplan
