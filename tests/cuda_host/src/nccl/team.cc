#include "nccl/team.h"

#include <algorithm>

namespace cuda_host::nccl {

ncclResult_t Team::join(Member& member, std::string& why) {
  const rt::Lock lock(mutex_);
  int& slot = devices_[static_cast<std::size_t>(member.rank)];
  if (slot >= 0) {
    why = "rank " + std::to_string(member.rank) + " joined twice";
    return ncclInvalidUsage;
  }
  // As NCCL does: one device cannot carry two ranks.
  const auto twin = std::find(devices_.begin(), devices_.end(), member.device);
  if (twin != devices_.end()) {
    why = "ranks " + std::to_string(twin - devices_.begin()) + " and " + std::to_string(member.rank) + " are both on device " +
          std::to_string(member.device);
    return ncclInvalidUsage;
  }
  slot = member.device;
  ++joined_;
  changed_.notify_all();
  return ncclSuccess;
}

bool Team::complete() {
  const rt::Lock lock(mutex_);
  return joined_ == size_;
}

bool Team::wait_complete() {
  rt::Lock lock(mutex_);
  return changed_.wait_for(lock.get(), std::chrono::milliseconds(settings().nccl_timeout_ms), [&] { return joined_ == size_; });
}

// False when the wait ended by failure, abort or time limit.
template <class Ready>
bool Team::wait(rt::Lock& lock, const Member& member, Ready ready) {
  const auto patience = std::chrono::milliseconds(settings().nccl_timeout_ms);
  changed_.wait_for(lock.get(), patience, [&] { return ready() || broken_ != ncclSuccess || member.aborted; });
  return ready();
}

void Team::execute(Member& member, const std::vector<Call>& calls) {
  // Sends first and receives last: a group may hold both sides of an exchange.
  std::vector<std::shared_ptr<Message>> sent;
  for (const Call& c : calls) {
    if (c.kind == Kind::Send) sent.push_back(post(member, c));
  }
  for (const Call& c : calls) {
    if (c.kind != Kind::Send && c.kind != Kind::Recv && !collective(member, c)) return;
  }
  for (const Call& c : calls) {
    if (c.kind == Kind::Recv && !receive(member, c)) return;
  }
  for (const auto& message : sent) {
    if (!wait_taken(member, message)) return;
  }
}

bool Team::collective(Member& member, const Call& call) {
  bool last = false;
  std::uint64_t round = 0;
  std::string mismatch;
  rt::mark_release(&arrive_token_);
  {
    const rt::Lock lock(mutex_);
    if (broken_ != ncclSuccess) return false;
    calls_[static_cast<std::size_t>(member.rank)] = call;
    present_[static_cast<std::size_t>(member.rank)] = true;
    round = round_;
    last = ++arrived_ == size_;
    if (last) mismatch = find_mismatch();
  }
  if (!mismatch.empty()) {
    break_team(ncclInvalidUsage, mismatch);
    rt::raise_fault(member.device, cudaErrorLaunchFailure, mismatch);
  } else if (last) {
    rt::mark_acquire(&arrive_token_);
    run_collective(calls_);  // everybody else waits, so no lock is needed
    rt::mark_release(&leave_token_);
    const rt::Lock lock(mutex_);
    std::fill(present_.begin(), present_.end(), false);
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
    return true;
  }
  std::string missing;
  {
    rt::Lock lock(mutex_);
    if (wait(lock, member, [&] { return round_ != round; })) {
      rt::mark_acquire(&leave_token_);
      return true;
    }
    missing = describe_missing();
    if (broken_ != ncclSuccess || member.aborted) missing = broken_text_;
  }
  fail(member, broken_ != ncclSuccess ? broken_ : ncclRemoteError, missing);
  return false;
}

std::string Team::find_mismatch() const {
  const Call& first = calls_[0];
  for (std::size_t r = 1; r < calls_.size(); ++r) {
    const Call& c = calls_[r];
    const bool reduces = c.kind == Kind::ReduceScatter || c.kind == Kind::AllReduce || c.kind == Kind::Reduce;
    if (c.kind != first.kind || c.count != first.count || c.type != first.type || c.peer != first.peer || (reduces && c.op != first.op)) {
      return "mismatched collective: rank 0 calls " + describe(first) + ", rank " + std::to_string(r) + " calls " + describe(c);
    }
  }
  return {};
}

std::string Team::describe_missing() const {
  std::string here, absent;
  for (int r = 0; r < size_; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (present_[i]) {
      here += " rank " + std::to_string(r) + " in " + describe(calls_[i]) + ";";
    } else {
      absent += " " + std::to_string(r);
    }
  }
  return "collective timed out:" + here + " not arrived: rank" + absent;
}

std::shared_ptr<Message> Team::post(const Member& member, const Call& call) {
  auto message = std::make_shared<Message>();
  message->call = call;
  rt::mark_release(&message->token);
  const rt::Lock lock(mutex_);
  mail_[{member.rank, call.peer}].push_back(message);
  changed_.notify_all();
  return message;
}

bool Team::receive(Member& member, const Call& call) {
  std::shared_ptr<Message> message;
  {
    rt::Lock lock(mutex_);
    auto& queue = mail_[{call.peer, member.rank}];
    if (wait(lock, member, [&] { return !queue.empty(); })) {
      message = queue.front();
      queue.pop_front();
    }
  }
  if (!message) {
    fail(member, ncclRemoteError,
         "rank " + std::to_string(member.rank) + " waits in " + describe(call) + ": rank " + std::to_string(call.peer) + " never sends");
    return false;
  }
  if (message->call.count != call.count || message->call.type != call.type) {
    const std::string text = "mismatched transfer: rank " + std::to_string(call.peer) + " calls " + describe(message->call) + ", rank " +
                             std::to_string(member.rank) + " calls " + describe(call);
    break_team(ncclInvalidUsage, text);
    rt::raise_fault(member.device, cudaErrorLaunchFailure, text);
    return false;
  }
  rt::mark_acquire(&message->token);
  std::copy_n(static_cast<const char*>(message->call.send), call.count * type_size(call.type), static_cast<char*>(call.recv));
  rt::mark_release(&message->taken_token);
  const rt::Lock lock(mutex_);
  message->taken = true;
  changed_.notify_all();
  return true;
}

bool Team::wait_taken(Member& member, const std::shared_ptr<Message>& message) {
  {
    rt::Lock lock(mutex_);
    if (wait(lock, member, [&] { return message->taken; })) {
      rt::mark_acquire(&message->taken_token);
      return true;
    }
  }
  fail(member, ncclRemoteError,
       "rank " + std::to_string(member.rank) + " waits in " + describe(message->call) + ": the peer never receives");
  return false;
}

void Team::break_team(ncclResult_t code, const std::string& text) {
  const rt::Lock lock(mutex_);
  if (broken_ == ncclSuccess) {
    broken_ = code;
    broken_text_ = text;
  }
  changed_.notify_all();
}

void Team::fail(Member& member, ncclResult_t code, const std::string& text) {
  const rt::Lock lock(mutex_);
  if (member.aborted || member.async_error != ncclSuccess) return;
  member.async_error = code;
  member.error_text = text;
  if (settings().print_faults) std::fprintf(stderr, "cuda_host: nccl: %s\n", text.c_str());
}

void Team::abort(Member& member) {
  const rt::Lock lock(mutex_);
  member.aborted = true;
  changed_.notify_all();
}

std::pair<std::shared_ptr<Team>, int> Team::split(Member& member, int color, int key) {
  rt::Lock lock(mutex_);
  const std::uint64_t round = split_round_;
  const auto self = static_cast<std::size_t>(member.rank);
  split_[self] = {color, key, nullptr, 0};
  if (++split_arrived_ == size_) {
    std::map<int, std::vector<std::pair<int, std::size_t>>> groups;
    for (std::size_t r = 0; r < split_.size(); ++r) {
      if (split_[r].color != NCCL_SPLIT_NOCOLOR) groups[split_[r].color].emplace_back(split_[r].key, r);
    }
    for (auto& [unused, members] : groups) {
      std::sort(members.begin(), members.end());
      auto team = std::make_shared<Team>(static_cast<int>(members.size()));
      for (std::size_t i = 0; i < members.size(); ++i) {
        split_[members[i].second].team = team;
        split_[members[i].second].rank = static_cast<int>(i);
      }
    }
    split_arrived_ = 0;
    ++split_round_;
    changed_.notify_all();
  } else if (!wait(lock, member, [&] { return split_round_ != round; })) {
    --split_arrived_;
    return {nullptr, -1};
  }
  return {split_[self].team, split_[self].rank};
}

}  // namespace cuda_host::nccl
