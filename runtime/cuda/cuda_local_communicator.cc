#include "runtime/cuda/cuda_local_communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "runtime/comm/local_group.h"
#include "runtime/cuda/cuda_stream.h"
#include "runtime/cuda/sum_ranks.h"

namespace zeroplan {
namespace {

// Events of all ranks, recorded by the rank alone: its buffers may be read, and it has read its peers'. Who waits for one has done so
// before the rank can record it again, as the ranks meet and leave in between.
struct CudaGroup : LocalGroup {
  CudaGroup(const std::vector<std::shared_ptr<Device>>& devices, std::chrono::milliseconds deadline)
      : LocalGroup(static_cast<int>(devices.size()), deadline) {
    for (const auto& device : devices) {
      device->use();
      ready.push_back(device->new_event());
      done.push_back(device->new_event());
    }
  }
  std::vector<std::unique_ptr<Event>> ready, done;
};

class CudaLocalCommunicator : public QueuedCommunicator {
 public:
  CudaLocalCommunicator(std::shared_ptr<CudaGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  // On the issuing thread. Events of the other ranks are only waited for once they are recorded: nothing waits for work that may never
  // come.
  void carry_out(const CollectiveCall& call) override {
    Stream& stream = *call.stream;
    stream.record(*group_->ready[rank_]);
    group_->meet(rank_, call);
    wait_for(group_->ready, stream);
    switch (call.kind) {
      case CallKind::all_gather: gather(call); break;
      case CallKind::reduce_scatter: reduce(call); break;
      case CallKind::all_reduce: sum(call); break;
      case CallKind::broadcast:
        if (rank_ != call.root) stream.copy(call.data, group_->call(call.root).data, call.count);
        break;
      case CallKind::barrier: break;
    }
    stream.record(*group_->done[rank_]);
    group_->leave(rank_);
    wait_for(group_->done, stream);
  }

  void wait_for(const std::vector<std::unique_ptr<Event>>& events, Stream& stream) {
    for (int r = 0; r < size(); ++r)
      if (r != rank_) stream.wait(*events[r]);
  }

  void gather(const CollectiveCall& call) {
    for (int k = 0; k < size(); ++k) {
      const int peer = (rank_ + k) % size();
      call.stream->copy(static_cast<char*>(call.own) + peer * call.count, group_->call(peer).data, call.count);
    }
  }

  // Of the first `count` ranks.
  RankBuffers buffers(int count) const {
    RankBuffers first;
    for (; first.count < count; ++first.count) first.of_rank[first.count] = group_->call(first.count).data;
    return first;
  }

  void reduce(const CollectiveCall& call) {
    enqueue_fold(static_cast<cudaStream_t>(call.stream->native()), call.own, buffers(call.contributors), rank_ * call.count, call.count,
                 call.dtype, call.fold == Fold::from_zero);
  }

  // Each rank sums its part of the elements for all ranks: nobody else touches that part, so no second buffer is needed.
  void sum(const CollectiveCall& call) {
    const int64_t part = (call.count + size() - 1) / size(), first = std::min(rank_ * part, call.count);
    enqueue_sum_everywhere(static_cast<cudaStream_t>(call.stream->native()), buffers(size()), first, std::min(part, call.count - first),
                           call.dtype);
  }

  std::shared_ptr<CudaGroup> group_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_cuda_local_communicators(const std::vector<std::shared_ptr<Device>>& devices,
                                                                         std::chrono::milliseconds deadline) {
  if (devices.empty() || devices.size() > kMostBuffers)
    throw Error(
        fmt::format("{} ranks in one process on GPUs: 1 to {} are possible; start one process per rank", devices.size(), kMostBuffers));
  auto group = std::make_shared<CudaGroup>(devices, deadline);  // shared: the communicators are owned apart and the last one ends it
  std::vector<std::unique_ptr<Communicator>> out;
  for (size_t r = 0; r < devices.size(); ++r) out.push_back(std::make_unique<CudaLocalCommunicator>(group, static_cast<int>(r)));
  return out;
}

}  // namespace zeroplan
