// Ranks that are threads of one process: peers read each other's buffers directly.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/comm/fold.h"
#include "runtime/comm/local_group.h"

namespace zeroplan {
namespace {

constexpr int64_t kFoldBlock = 16384;  // bytes: the accumulator's block stays in the first-level cache

class LocalCommunicator : public QueuedCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  void carry_out(const CollectiveCall& call) override {
    group_->meet(rank_, call);
    switch (call.kind) {
      case CallKind::all_gather: gather(call); break;
      case CallKind::reduce_scatter: reduce(call); break;
      case CallKind::all_reduce: sum(call); break;
      case CallKind::broadcast:
        if (rank_ != call.root) copy(call.data, group_->call(call.root).data, call.count);
        break;
      case CallKind::barrier: break;
    }
    group_->leave(rank_);
  }

  static void copy(void* to, const void* from, int64_t bytes) {
    if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  // Starts with the own part, so that the ranks do not all read the same peer at once.
  void gather(const CollectiveCall& call) {
    for (int k = 0; k < size(); ++k) {
      const int peer = (rank_ + k) % size();
      copy(static_cast<char*>(call.own) + peer * call.count, group_->call(peer).data, call.count);
    }
  }

  void reduce(const CollectiveCall& call) {
    const int64_t width = dtype_bytes(call.dtype), wide = dtype_bytes(wide_dtype(call.dtype)), block = kFoldBlock / wide;
    for (int64_t first = 0; first < call.count; first += block) {
      const int64_t n = std::min(block, call.count - first), at = (rank_ * call.count + first) * width;
      char* own = static_cast<char*>(call.own) + first * wide;
      if (call.fold == Fold::from_zero) std::memset(own, 0, static_cast<size_t>(n * wide));
      for (int r = 0; r < call.contributors; ++r) add_in_place(own, static_cast<const char*>(group_->call(r).data) + at, n, call.dtype);
    }
  }

  // Each rank sums its part of the elements for all ranks: nobody else touches that part, so no second buffer is needed.
  void sum(const CollectiveCall& call) {
    const int64_t width = dtype_bytes(call.dtype), part = (call.count + size() - 1) / size();
    const int64_t first = std::min(rank_ * part, call.count), n = std::min(part, call.count - first), at = first * width;
    auto* total = static_cast<char*>(group_->call(0).data) + at;
    for (int r = 1; r < size(); ++r) add_in_place(total, static_cast<const char*>(group_->call(r).data) + at, n, call.dtype);
    for (int r = 1; r < size(); ++r) copy(static_cast<char*>(group_->call(r).data) + at, total, n * width);
  }

  std::shared_ptr<LocalGroup> group_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_communicators(int n, std::chrono::milliseconds deadline) {
  if (n < 1) throw Error(fmt::format("a group of {} ranks: at least 1 is needed", n));
  auto group = std::make_shared<LocalGroup>(n, deadline);  // shared: the communicators are owned apart and the last one ends it
  std::vector<std::unique_ptr<Communicator>> out;
  for (int r = 0; r < n; ++r) out.push_back(std::make_unique<LocalCommunicator>(group, r));
  return out;
}

}  // namespace zeroplan
