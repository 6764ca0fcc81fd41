#include "runtime/mpi/mpi_state.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/comm/communicator.h"

namespace zeroplan {
namespace {

constexpr int kNoticeTag = 1;
constexpr size_t kLongestNotice = 3500;  // bytes: sent at once, without the receiver's doing
// A wait looks often at first, as most are short; it looks for dead peers less often.
constexpr auto kFirstPause = std::chrono::microseconds(20), kLongestPause = std::chrono::microseconds(500);
constexpr auto kFarewell = std::chrono::milliseconds(500);
constexpr auto kPeerCheck = std::chrono::milliseconds(50);
constexpr auto kLongestStop = std::chrono::seconds(10);  // of a peer's process: one that is continued before goes on

std::string packed(const Notice& notice) {
  std::string text{static_cast<char>(notice.fate), static_cast<char>(notice.names_rank)};
  return text + notice.words.substr(0, kLongestNotice);
}

Notice unpacked(const std::string& text) { return {static_cast<Fate>(text.at(0)), text.at(1) != 0, text.substr(2)}; }

std::vector<ProcessIdentity> all_identities(MPI_Comm comm, int size) {
  const ProcessIdentity own = own_identity();
  std::vector<ProcessIdentity> all(size);
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, comm), "MPI_Allgather");
  return all;
}

}  // namespace

MpiState::MpiState() {
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  if (level < MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    throw Error("this MPI library takes calls from one thread at a time only; use one that was built with MPI_THREAD_MULTIPLE");
  }
  control_ = new_comm();
  notices_.resize(size_);
  sends_.assign(size_, MPI_REQUEST_NULL);
  peers_ = PeerProcesses(all_identities(control_, size_));
}

// A job that failed is ended by its launcher, which sees this process end without MPI_Finalize.
MpiState::~MpiState() {
  if (notices_[rank_].fate == Fate::none) MPI_Finalize();
}

MPI_Comm MpiState::new_comm() {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

void MpiState::stop(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  if (notices_[rank_].fate == Fate::none) tell_and_hear(notice, -1);
}

// `only`: the one that has to know; -1: all others. Then MPI is called no more: what is under way points into memory that is soon freed,
// here and in the peers, so that all stay for a while.
void MpiState::tell_and_hear(const Notice& notice, int only) {
  notices_[rank_] = notice;
  sent_ = packed(notice);
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  const auto some_unknown = [&] {
    for (int r = 0; r < size_; ++r)
      if (notices_[r].fate == Fate::none && !peers_.ended(r)) return true;
    return false;
  };
  try {
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_ && (only < 0 || peer == only))
        check_mpi(MPI_Isend(sent_.data(), static_cast<int>(sent_.size()), MPI_BYTE, peer, kNoticeTag, control_, &sends_[peer]),
                  "MPI_Isend");
    for (bool wait = true; wait && std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      listen();
      int sent = 0;
      check_mpi(MPI_Testall(size_, sends_.data(), &sent, MPI_STATUSES_IGNORE), "MPI_Testall");
      wait = only >= 0 || some_unknown();
    }
  } catch (const Error&) {  // MPI does not work any more: this rank has said all that it can
  }
}

void MpiState::listen() {
  for (;;) {
    int there = 0, bytes = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, control_, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    std::string text(bytes, '\0');
    check_mpi(MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kNoticeTag, control_, MPI_STATUS_IGNORE), "MPI_Recv");
    notices_[status.MPI_SOURCE] = unpacked(text);
  }
}

void MpiState::throw_if_stopped() {
  const std::lock_guard lock(mutex_);
  if (notices_[rank_].fate == Fate::none) {
    listen();
    const auto first = std::find_if(notices_.begin(), notices_.end(), [](const Notice& n) { return n.fate != Fate::none; });
    if (first == notices_.end()) return;
    tell_and_hear({Fate::told, first->names_rank, first->words}, static_cast<int>(first - notices_.begin()));
  }
  throw PeerFailure(notices_[rank_].words);
}

std::vector<Notice> MpiState::notices() {
  const std::lock_guard lock(mutex_);
  return notices_;
}

// A rank that said why and then ended is no riddle.
void MpiState::miss(const std::vector<int>& ranks, const std::string& why) {
  throw_if_stopped();
  missed_ = true;
  throw MissingPeers(fmt::format("rank{} {} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), why), ranks);
}

void MpiState::miss_late(const std::vector<int>& ranks, std::chrono::milliseconds deadline) {
  std::string why = fmt::format("did not come within {} ms", deadline.count());
  for (const int r : ranks)
    if (const std::string trouble = peers_.trouble(r); !trouble.empty()) why += fmt::format("; of rank {}, {}", r, trouble);
  miss(ranks, why);
}

// What a peer sent before it ended still counts.
void MpiState::wait(MpiRequests& requests, std::chrono::milliseconds deadline, int peer) {
  const auto begin = std::chrono::steady_clock::now();
  auto next_check = begin + kPeerCheck;
  int gone = -1;
  auto last_running = begin;  // all that are missing
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    throw_if_stopped();
    if (peer < 0 ? requests.done() : requests.done_with(peer)) return;
    if (gone >= 0) miss({gone}, fmt::format("is gone: {}", peers_.trouble(gone)));
    const auto now = std::chrono::steady_clock::now();
    if (deadline.count() > 0 && now > begin + deadline) miss_late(requests.missing(), deadline);
    if (now > next_check) {
      gone = requests.missing_one([&](int r) { return peers_.ended(r); });
      const int stopped = requests.missing_one([&](int r) { return peers_.stopped(r); });
      if (stopped < 0) last_running = now;
      if (now > last_running + kLongestStop) miss({stopped}, fmt::format("does not go on: {}", peers_.trouble(stopped)));
      next_check = now + kPeerCheck;
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace zeroplan
