#include "runtime/comm/local_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/type_name.h"
#include "runtime/comm/communicator.h"

namespace zeroplan {
namespace {

bool agree(const CollectiveCall& a, const CollectiveCall& b) {
  return a.kind == b.kind && a.count == b.count && a.dtype == b.dtype && a.contributors == b.contributors && a.fold == b.fold &&
         a.root == b.root;
}

}  // namespace

std::string describe(const CollectiveCall& c) {
  const std::string name = call_kind_name(c.kind);
  switch (c.kind) {
    case CallKind::all_gather: return fmt::format("{} of shards of {} bytes", name, c.count);
    case CallKind::reduce_scatter:
      return fmt::format("{} of shards of {} {} elements from {} contributors{}", name, c.count, type_name(c.dtype), c.contributors,
                         c.fold == Fold::from_zero ? ", from zero" : "");
    case CallKind::all_reduce: return fmt::format("{} of {} {} elements", name, c.count, type_name(c.dtype));
    case CallKind::broadcast: return fmt::format("{} of {} bytes from rank {}", name, c.count, c.root);
    case CallKind::barrier: break;
  }
  return name;
}

LocalGroup::LocalGroup(int size, std::chrono::milliseconds deadline) : size_(size), deadline_(deadline), calls_(size), arrivals_(size) {}

void LocalGroup::meet(int rank, const CollectiveCall& call) {
  std::unique_lock lock(mutex_);
  throw_if_aborted();
  calls_[rank] = call;
  arrive(lock, rank, true);
}

void LocalGroup::leave(int rank) {
  std::unique_lock lock(mutex_);
  throw_if_aborted();
  arrive(lock, rank, false);
}

void LocalGroup::arrive(std::unique_lock<std::mutex>& lock, int rank, bool compare) {
  const uint64_t round = round_;
  ++arrivals_[rank];
  if (++waiting_ == size_) {
    if (compare) compare_calls();
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  const auto until = std::chrono::steady_clock::now() + deadline_;
  if (!changed_.wait_until(lock, until, [&] { return round_ != round || aborted_; })) miss(rank);
  // A round that was complete before the abort still counts: its buffers are all there.
  if (round_ == round) throw_if_aborted();
}

void LocalGroup::throw_if_ended() {
  const std::lock_guard lock(mutex_);
  throw_if_aborted();
}

void LocalGroup::throw_if_aborted() const {
  if (!aborted_) return;
  if (!missing_.empty()) throw MissingPeers(reason_, missing_);
  throw Error(reason_);
}

void LocalGroup::compare_calls() {
  for (int r = 1; r < size_; ++r) {
    if (agree(calls_[0], calls_[r])) continue;
    abort_locked(fmt::format("ranks disagree in collective {}: rank 0 called {}, rank {} called {}; all ranks must run the same plan",
                             (arrivals_[0] - 1) / 2, describe(calls_[0]), r, describe(calls_[r])),
                 {});
    throw_if_aborted();
  }
}

void LocalGroup::miss(int rank) {
  std::vector<int> missing;
  for (int r = 0; r < size_; ++r)
    if (arrivals_[r] < arrivals_[rank]) missing.push_back(r);
  abort_locked(fmt::format("rank{} {} did not come to collective {} ({}) within {} ms; rank {} waited", missing.size() == 1 ? "" : "s",
                           fmt::join(missing, ", "), (arrivals_[rank] - 1) / 2, describe(calls_[rank]), deadline_.count(), rank),
               missing);
}

void LocalGroup::abort(const std::string& reason) {
  std::lock_guard lock(mutex_);
  abort_locked(reason, {});
}

void LocalGroup::abort_locked(const std::string& reason, std::vector<int> missing) {
  if (aborted_) return;
  aborted_ = true;
  reason_ = reason;
  missing_ = std::move(missing);
  changed_.notify_all();
}

}  // namespace zeroplan
