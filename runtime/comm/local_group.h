#pragma once
// Where the ranks of one local communicator meet, on the CPU or on GPUs.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "runtime/comm/queued_communicator.h"

namespace zeroplan {

// "all_gather of shards of 64 bytes"
std::string describe(const CollectiveCall& call);

class LocalGroup {
 public:
  LocalGroup(int size, std::chrono::milliseconds deadline);
  int size() const { return size_; }

  // Returns when all ranks have posted; throws Error where they disagree, do not come in time, or the group was aborted.
  void meet(int rank, const CollectiveCall& call);
  // Returns when all ranks have finished with the buffers of this call.
  void leave(int rank);
  // Valid between meet and leave.
  const CollectiveCall& call(int rank) const { return calls_[rank]; }
  void abort(const std::string& reason);
  void throw_if_ended();  // by abort, or as a rank did not come

 private:
  void arrive(std::unique_lock<std::mutex>& lock, int rank, bool compare);
  void throw_if_aborted() const;
  void compare_calls();
  void miss(int rank);
  void abort_locked(const std::string& reason, std::vector<int> missing);

  const int size_;
  const std::chrono::milliseconds deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<CollectiveCall> calls_;
  std::vector<uint64_t> arrivals_;  // by rank; two per call
  int waiting_ = 0;
  uint64_t round_ = 0;
  bool aborted_ = false;
  std::string reason_;
  std::vector<int> missing_;
};

}  // namespace zeroplan
