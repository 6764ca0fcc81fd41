#include "runtime/cuda/nccl_group.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace zeroplan {
namespace {

constexpr auto kLook = std::chrono::milliseconds(2), kPeerCheck = std::chrono::milliseconds(50);
// Kernels of the gathers and of the reductions run side by side: both must fit on the device whatever the order in which they come there.
constexpr int kMostBlocks = 16;

std::string words_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

NcclGroup::NcclGroup(const NcclSetup& setup)
    : LocalGroup(static_cast<int>(setup.ranks.size()), setup.deadline),
      total_(setup.size),
      deadline_(setup.deadline),
      check_peers_(setup.check_peers),
      listeners_(setup.ranks.size()) {
  for (size_t i = 0; i < setup.ranks.size(); ++i)
    ranks_.push_back(std::make_shared<NcclRank>(setup.ranks[i], setup.devices[i], *this, deadline_, check_peers_));
  watcher_ = std::thread([this] { watch(); });
}

NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(wake_mutex_);
    closing_ = true;
  }
  notify();
  watcher_.join();
  for (const auto& rank : ranks_) rank->finalize();
  for (const auto& rank : ranks_) rank->destroy();
}

void NcclGroup::connect(const std::string& id) {
  ncclUniqueId unique;
  if (id.size() != sizeof unique) throw Error(fmt::format("an NCCL id of {} bytes, {} are needed", id.size(), sizeof unique));
  std::memcpy(&unique, id.data(), sizeof unique);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = kMostBlocks;
  try {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    ncclResult_t begun = ncclSuccess;
    for (const auto& rank : ranks_) {
      rank->device().use();
      if (begun == ncclSuccess || begun == ncclInProgress)
        begun = ncclCommInitRankConfig(rank->handle(), total_, unique, rank->rank(), &config);
    }
    const ncclResult_t ended = ncclGroupEnd();
    check_nccl(begun, "ncclCommInitRankConfig");
    check_nccl(ended, "ncclCommInitRankConfig");
    for (const auto& rank : ranks_) rank->settle("ncclCommInitRankConfig", ncclInProgress);
  } catch (const Error& error) {
    abort(error.what());
    throw;
  }
}

void NcclGroup::tell(int local, std::function<void(std::exception_ptr)> failed) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_[local] = std::move(failed);
}

void NcclGroup::abort(const std::string& reason) {
  LocalGroup::abort(reason);
  try {
    throw_if_ended();
  } catch (...) {
    for (const auto& rank : ranks_) rank->end(std::current_exception());
  }
}

void NcclGroup::watch() {
  auto next_check = std::chrono::steady_clock::now();
  const auto busy = [&] { return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->pending(); }); };
  for (;;) {
    {
      std::unique_lock lock(wake_mutex_);
      busy() ? wake_.wait_for(lock, kLook) : wake_.wait_for(lock, kPeerCheck);
      if (closing_) return;
    }
    int local = 0;
    try {
      const auto now = std::chrono::steady_clock::now();
      if (check_peers_ && busy() && now > next_check) {
        check_peers_();
        next_check = now + kPeerCheck;
      }
      for (; local < size(); ++local) look_at(local);
    } catch (...) {
      return fail(std::min(local, size() - 1), std::current_exception());
    }
  }
}

// On the rank's device: without one the first look would take memory of GPU 0, whoever works there.
void NcclGroup::look_at(int local) {
  ranks_[local]->device().use();
  if (const auto operation = ranks_[local]->look()) throw late(local, *operation);
}

MissingPeers NcclGroup::late(int local, const NcclRank::Late& operation) {
  std::vector<int> missing;
  for (const auto& rank : ranks_)
    if (!rank->has_come_to(operation.number)) missing.push_back(rank->rank());
  std::string who = fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
  if (missing.empty()) who = total_ > size() ? "some rank of another process" : "the last part of all ranks";
  return {fmt::format("{} did not come to collective {} ({}) within {} ms; rank {} waited", who, operation.number, describe(operation.call),
                      deadline_.count(), ranks_[local]->rank()),
          missing};
}

// The stream first: when the abort lets it go on, whoever waits for it finds the error.
void NcclGroup::fail(int local, const std::exception_ptr& error) {
  ranks_[local]->fail_stream(error);
  {
    const std::lock_guard lock(listeners_mutex_);
    if (listeners_[local]) listeners_[local](error);
  }
  abort(words_of(error));
}

}  // namespace zeroplan
