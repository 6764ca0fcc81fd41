#include "runtime/device/cpu_device.h"

namespace zeroplan {

uint64_t CpuEvent::issue() {
  std::lock_guard lock(mutex_);
  return ++recorded_;
}

uint64_t CpuEvent::latest() {
  std::lock_guard lock(mutex_);
  return recorded_;
}

void CpuEvent::finish(uint64_t occasion, std::exception_ptr error) {
  std::lock_guard lock(mutex_);  // also while notifying: who waits may destroy the event next
  finished_ = occasion;
  error_ = std::move(error);
  changed_.notify_all();
}

std::exception_ptr CpuEvent::await(uint64_t occasion) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ >= occasion; });
  return error_;
}

std::unique_ptr<Event> make_cpu_event() { return std::make_unique<CpuEvent>(); }

}  // namespace zeroplan
