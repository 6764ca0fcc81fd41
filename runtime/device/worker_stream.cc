// A stream with a thread of its own that takes commands from a ring and sleeps when there are none.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/device/cpu_device.h"

namespace zeroplan {
namespace {

struct Command {
  enum class Kind : uint8_t { task, copy, fill, mark, record, wait } kind{};
  Stream::Task task = nullptr;
  void* to = nullptr;  // argument of a task
  const void* from = nullptr;
  int64_t bytes = 0;
  uint32_t value = 0;
  CpuEvent* event = nullptr;
  uint64_t occasion = 0;
};

class WorkerStream : public Stream {
 public:
  WorkerStream() : ring_(kStreamCapacity), thread_([this] { work(); }) {}
  ~WorkerStream() override {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void launch(Task task, void* argument) override { push({.kind = Command::Kind::task, .task = task, .to = argument}); }
  void copy(void* to, const void* from, int64_t bytes) override {
    push_bytes({.kind = Command::Kind::copy, .to = to, .from = from, .bytes = bytes});
  }
  void fill(void* to, int value, int64_t bytes) override {
    push_bytes({.kind = Command::Kind::fill, .to = to, .bytes = bytes, .value = static_cast<uint32_t>(value)});
  }
  void host_call(Task task, void* argument) override { launch(task, argument); }
  void mark(uint32_t* word, uint32_t value) override { push({.kind = Command::Kind::mark, .to = word, .value = value}); }
  void record(Event& event) override {
    auto& e = static_cast<CpuEvent&>(event);
    push({.kind = Command::Kind::record, .event = &e, .occasion = e.issue()});
  }
  void wait(Event& event) override {
    auto& e = static_cast<CpuEvent&>(event);
    const uint64_t occasion = e.latest();
    push({.kind = Command::Kind::wait, .event = &e, .occasion = occasion});
    std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    drained_.wait(lock, [&] { return done_ == issued_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // Nothing to do is not a command: its addresses may be null.
  void push_bytes(Command command) {
    if (command.bytes > 0) push(command);
  }
  void push(Command command) {
    std::unique_lock lock(mutex_);
    drained_.wait(lock, [&] { return issued_ - done_ < ring_.size(); });
    ring_[issued_ % ring_.size()] = command;
    ++issued_;
    lock.unlock();
    changed_.notify_one();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closed_ || done_ < issued_; });
      if (done_ == issued_) return;
      const Command command = ring_[done_ % ring_.size()];
      std::exception_ptr error = error_;
      lock.unlock();
      error = carry_out(command, std::move(error));
      lock.lock();
      error_ = std::move(error);
      ++done_;
      drained_.notify_all();
    }
  }

  // Records are carried out on a failed stream too: whoever waits must learn of the failure.
  static std::exception_ptr carry_out(const Command& c, std::exception_ptr error) {
    if (c.kind == Command::Kind::record) {
      c.event->finish(c.occasion, error);
      return error;
    }
    if (error) return error;
    try {
      switch (c.kind) {
        case Command::Kind::task: c.task(c.to); break;
        case Command::Kind::copy: std::memmove(c.to, c.from, static_cast<size_t>(c.bytes)); break;
        case Command::Kind::fill: std::memset(c.to, static_cast<int>(c.value), static_cast<size_t>(c.bytes)); break;
        case Command::Kind::mark: std::atomic_ref(*static_cast<uint32_t*>(c.to)).store(c.value, std::memory_order_release); break;
        case Command::Kind::wait: return c.event->await(c.occasion);
        case Command::Kind::record: break;
      }
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::condition_variable changed_, drained_;
  std::vector<Command> ring_;
  uint64_t issued_ = 0, done_ = 0;
  bool closed_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Stream> make_worker_stream() { return std::make_unique<WorkerStream>(); }

}  // namespace zeroplan
