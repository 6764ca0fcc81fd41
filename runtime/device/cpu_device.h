#pragma once
// The parts of the CPU device. Only runtime/device includes this.
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "runtime/device/device.h"

namespace zeroplan {

// Occasions are counted: `recorded` when a record is issued, `finished` when the stream gets there.
class CpuEvent : public Event {
 public:
  uint64_t issue();                                          // a new occasion, returns its number
  uint64_t latest();                                         // occasion that a wait issued now is for
  void finish(uint64_t occasion, std::exception_ptr error);  // error: why the recording stream failed, null if it did not
  std::exception_ptr await(uint64_t occasion);               // blocks; returns the recording stream's error

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t recorded_ = 0, finished_ = 0;
  std::exception_ptr error_;
};

std::unique_ptr<Stream> make_inline_stream(int threads);
std::unique_ptr<Stream> make_worker_stream();
std::unique_ptr<Event> make_cpu_event();

}  // namespace zeroplan
