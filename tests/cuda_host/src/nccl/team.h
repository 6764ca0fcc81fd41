// The ranks of one communicator, as threads of this process, and how they meet.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cudart/runtime.h"

namespace cuda_host::nccl {

enum class Kind { AllGather, ReduceScatter, AllReduce, Broadcast, Reduce, AlltoAll, Gather, Scatter, Send, Recv };

struct Call {
  Kind kind = Kind::AllReduce;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int peer = 0;  // root of a rooted collective, the other side of a send or receive
};

std::string describe(const Call& call);
std::size_t type_size(ncclDataType_t type);  // 0: unsupported
// Carries out a collective once all calls are known to agree.
void run_collective(const std::vector<Call>& calls);

class Team;

// One rank's view; shared by the handle and by queued operations.
struct Member {
  std::shared_ptr<Team> team;
  int rank = 0;
  int device = 0;
  bool blocking = true;
  bool aborted = false;
  ncclResult_t async_error = ncclSuccess;
  std::string error_text;
  rt::OperationPtr last;  // operations of one communicator never overlap
  std::set<const void*> registrations;
};

struct Message {
  Call call;
  bool taken = false;
  char token = 0, taken_token = 0;
};

class Team {
 public:
  explicit Team(int size)
      : size_(size),
        devices_(static_cast<std::size_t>(size), -1),
        calls_(static_cast<std::size_t>(size)),
        present_(static_cast<std::size_t>(size), false),
        split_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }
  ncclResult_t join(Member& member, std::string& why);
  bool complete();
  bool wait_complete();

  // Runs on a stream worker: everything one rank submitted as one group.
  void execute(Member& member, const std::vector<Call>& calls);
  void abort(Member& member);

  // Collective over the host threads; null for a rank without a colour.
  std::pair<std::shared_ptr<Team>, int> split(Member& member, int color, int key);

 private:
  bool collective(Member& member, const Call& call);
  std::shared_ptr<Message> post(const Member& member, const Call& call);
  bool receive(Member& member, const Call& call);
  bool wait_taken(Member& member, const std::shared_ptr<Message>& message);
  std::string find_mismatch() const;
  std::string describe_missing() const;
  void fail(Member& member, ncclResult_t code, const std::string& text);
  void break_team(ncclResult_t code, const std::string& text);
  template <class Ready>
  bool wait(rt::Lock& lock, const Member& member, Ready ready);

  struct Split {
    int color = NCCL_SPLIT_NOCOLOR, key = 0;
    std::shared_ptr<Team> team;
    int rank = 0;
  };

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> devices_;
  int joined_ = 0;
  std::vector<Call> calls_;
  std::vector<bool> present_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  ncclResult_t broken_ = ncclSuccess;
  std::string broken_text_;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> mail_;
  std::vector<Split> split_;
  int split_arrived_ = 0;
  std::uint64_t split_round_ = 0;
  char arrive_token_ = 0, leave_token_ = 0;
};

}  // namespace cuda_host::nccl

struct ncclComm {
  std::shared_ptr<cuda_host::nccl::Member> member;
};
