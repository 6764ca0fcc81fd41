#include "runtime/cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/nccl_group.h"
#include "runtime/cuda/sum_ranks.h"

namespace zeroplan {
namespace {

constexpr int kOldest = NCCL_VERSION(2, 26, 0);
constexpr int64_t kSlotAlignment = 64;

std::string version_text(int version) { return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100); }

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::i64: return ncclInt64;
    default: unhandled_dtype(dtype);
  }
}

class NcclCommunicator : public QueuedCommunicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclGroup> group, int local, const NcclSetup& setup)
      : group_(std::move(group)),
        local_(local),
        mode_(setup.mode),
        tell_peers_(setup.tell_peers),
        rank_(group_->rank(local)),
        slot_(std::max(setup.receive_bytes / setup.size / kSlotAlignment, int64_t{1}) * kSlotAlignment) {
    rank_->device().use();
    received_ = rank_->device().alloc(std::max(setup.receive_bytes, slot_ * setup.size) + kSlotAlignment);
    shared_ = rank_->share(received_->data(), received_->bytes());
  }

  int rank() const override { return rank_->rank(); }
  int size() const override { return group_->total(); }
  void abort(const std::string& reason) override {
    if (tell_peers_) tell_peers_(reason);  // first: what follows may hang with the device
    group_->abort(reason);
  }
  std::shared_ptr<void> share(void* data, int64_t bytes) override { return rank_->share(data, bytes); }
  void watch(std::function<void(std::exception_ptr)> failed) override { group_->tell(local_, std::move(failed)); }

 private:
  // On the issuing thread.
  void carry_out(const CollectiveCall& call) override {
    group_->meet(local_, call);
    group_->leave(local_);
    rank_->begin(call);
    switch (call.kind) {
      case CallKind::all_gather: gather(call.data, call.own, call.count, call); break;
      case CallKind::reduce_scatter: sums_fast(call) ? reduce_fast(call) : reduce(call); break;
      case CallKind::all_reduce: sum(call); break;
      case CallKind::broadcast: broadcast_from(call); break;
      case CallKind::barrier: meet_all(call); break;
    }
    rank_->issued();
    group_->notify();
  }

  static cudaStream_t stream_of(const CollectiveCall& call) { return static_cast<cudaStream_t>(call.stream->native()); }
  char* received(int64_t at) const { return static_cast<char*>(received_->data()) + at; }
  char* word() const { return received(received_->bytes() - kSlotAlignment); }

  void gather(const void* from, void* to, int64_t bytes, const CollectiveCall& call) {
    rank_->call("ncclAllGather",
                [&](ncclComm_t comm) { return ncclAllGather(from, to, static_cast<size_t>(bytes), ncclInt8, comm, stream_of(call)); });
  }

  void broadcast_from(const CollectiveCall& call) {
    rank_->call("ncclBroadcast", [&](ncclComm_t comm) {
      return ncclBroadcast(call.data, call.data, static_cast<size_t>(call.count), ncclInt8, call.root, comm, stream_of(call));
    });
  }

  void meet_all(const CollectiveCall& call) {
    rank_->call("ncclAllReduce",
                [&](ncclComm_t comm) { return ncclAllReduce(word(), word(), 1, ncclInt32, ncclSum, comm, stream_of(call)); });
  }

  // Parts [first, first + n) of all shards, each to the rank that adds it up.
  void exchange(const CollectiveCall& call, int64_t first, int64_t n) {
    const int64_t width = dtype_bytes(call.dtype);
    const auto* full = static_cast<const char*>(call.data);
    rank_->call("ncclSend and ncclRecv", [&](ncclComm_t comm) {
      ncclResult_t status = ncclGroupStart();
      const auto add = [&](ncclResult_t one) {
        if (status == ncclSuccess && one != ncclInProgress) status = one;
      };
      for (int k = 1; k < size(); ++k) {
        const int to = (rank() + k) % size(), from = (rank() + size() - k) % size();
        const auto bytes = static_cast<size_t>(n * width);
        if (from < call.contributors) add(ncclRecv(received(from * slot_), bytes, ncclInt8, from, comm, stream_of(call)));
        if (rank() < call.contributors) add(ncclSend(full + (to * call.count + first) * width, bytes, ncclInt8, to, comm, stream_of(call)));
      }
      const ncclResult_t end = ncclGroupEnd();
      return status == ncclSuccess ? end : status;
    });
  }

  void reduce(const CollectiveCall& call) {
    const int64_t width = dtype_bytes(call.dtype), piece = slot_ / width;
    for (int64_t first = 0; first < call.count; first += piece) {
      const int64_t n = std::min(piece, call.count - first);
      if (size() > 1 && call.contributors > 0) exchange(call, first, n);
      const auto from = [&](int r) -> void* {
        return r == rank() ? static_cast<char*>(call.data) + (r * call.count + first) * width : received(r * slot_);
      };
      fold(call, static_cast<char*>(call.own) + first * dtype_bytes(wide_dtype(call.dtype)), n, 0, call.contributors, from,
           call.fold == Fold::from_zero);
    }
  }

  bool sums_fast(const CollectiveCall& call) const {
    return mode_ == ReduceMode::fast && size() > 1 && call.contributors == size() && !is_half(call.dtype) &&
           call.count * dtype_bytes(call.dtype) <= received_->bytes() - kSlotAlignment;
  }

  void reduce_fast(const CollectiveCall& call) {
    rank_->call("ncclReduceScatter", [&](ncclComm_t comm) {
      return ncclReduceScatter(call.data, received(0), static_cast<size_t>(call.count), nccl_type(call.dtype), ncclSum, comm,
                               stream_of(call));
    });
    fold(
        call, call.own, call.count, 0, 1, [&](int) -> void* { return received(0); }, call.fold == Fold::from_zero);
  }

  // Each rank has all parts, and adds them up in the same order.
  void sum(const CollectiveCall& call) {
    if (size() == 1) return;
    const int64_t width = dtype_bytes(call.dtype), piece = slot_ / width;
    for (int64_t first = 0; first < call.count; first += piece) {
      const int64_t n = std::min(piece, call.count - first);
      char* own = static_cast<char*>(call.data) + first * width;
      gather(own, received(0), n * width, call);
      call.stream->copy(own, received(0), n * width);
      fold(
          call, own, n, 1, size(), [&](int r) -> void* { return received(r * n * width); }, false);
    }
  }

  // Ranks [begin, end) in order; a kernel takes so many at once.
  template <typename From>
  void fold(const CollectiveCall& call, void* to, int64_t n, int begin, int end, const From& from, bool from_zero) {
    do {
      RankBuffers part;
      for (; begin < end && part.count < kMostBuffers; ++begin) part.of_rank[part.count++] = from(begin);
      enqueue_fold(stream_of(call), to, part, 0, n, call.dtype, from_zero);
      from_zero = false;
    } while (begin < end);
  }

  std::shared_ptr<NcclGroup> group_;
  int local_;
  ReduceMode mode_;
  std::function<void(const std::string&)> tell_peers_;
  std::shared_ptr<NcclRank> rank_;
  int64_t slot_;                            // bytes for what one rank sends at a time
  std::unique_ptr<DeviceMemory> received_;  // slots by rank, and a word
  std::shared_ptr<void> shared_;
};

}  // namespace

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  if (version < kOldest)
    throw Error(
        fmt::format("the NCCL library is version {}, this program needs {} or later; install a newer one, or let the ranks share one "
                    "GPU",
                    version_text(version), version_text(kOldest)));
  return version_text(version);
}

std::string new_nccl_id() {
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

std::vector<std::unique_ptr<Communicator>> make_nccl_communicators(const NcclSetup& setup) {
  if (setup.ranks.empty() || setup.ranks.size() != setup.devices.size())
    throw Error(fmt::format("{} ranks on {} GPUs: each needs its own", setup.ranks.size(), setup.devices.size()));
  auto group = std::make_shared<NcclGroup>(setup);  // shared: the communicators are owned apart and the last one ends it
  group->connect(setup.id);
  std::vector<std::unique_ptr<Communicator>> out;
  for (size_t i = 0; i < setup.ranks.size(); ++i) out.push_back(std::make_unique<NcclCommunicator>(group, static_cast<int>(i), setup));
  return out;
}

}  // namespace zeroplan
