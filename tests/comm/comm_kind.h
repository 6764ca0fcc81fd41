#pragma once
// The communicators that the suite is run for, and ranks as threads that use one. Whoever links the suite says which kinds there are.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace zeroplan::test {

using Devices = std::vector<std::shared_ptr<Device>>;

struct CommKind {
  std::string name;
  Devices (*devices)(int ranks);
  std::vector<std::unique_ptr<Communicator>> (*make)(const Devices& devices, std::chrono::milliseconds deadline);
  int calls = 5000;     // that are issued without a wait in between
  bool ordered = true;  // sums have the order of the ranks, to the last bit
};
const std::vector<CommKind>& comm_kinds();

struct RankContext {
  int rank;
  Communicator& comm;
  Stream& stream;
  Device& device;
};

// One thread per rank; returns what each rank's work threw, "" where nothing.
std::vector<std::string> on_ranks(const CommKind& kind, int n, std::chrono::milliseconds deadline,
                                  const std::function<void(RankContext)>& work);
void expect_no_errors(const std::vector<std::string>& errors);

// Values on the rank's device.
template <typename T>
class Buffer {
 public:
  Buffer(RankContext c, std::vector<T> values)
      : c_(c), count_(values.size()), memory_(c.device.alloc(static_cast<int64_t>(values.size() * sizeof(T)))) {
    set(values);
  }
  T* data() const { return static_cast<T*>(memory_->data()); }
  void set(const std::vector<T>& values) {
    c_.stream.copy(data(), values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
    c_.stream.synchronize();
  }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    c_.stream.copy(values.data(), data(), static_cast<int64_t>(count_ * sizeof(T)));
    c_.stream.synchronize();
    return values;
  }

 private:
  RankContext c_;
  size_t count_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace zeroplan::test
