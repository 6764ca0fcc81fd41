#pragma once
// The ranks of an NCCL communicator that this process has, and the thread that watches them. Only runtime/cuda includes this.
#include <vector>

#include "runtime/cuda/nccl_communicator.h"
#include "runtime/cuda/nccl_rank.h"

namespace zeroplan {

// Ranks of this process meet before they issue an operation: who does not come is known by name, and who wants another operation too.
class NcclGroup : LocalGroup {
 public:
  using LocalGroup::leave;
  using LocalGroup::meet;
  explicit NcclGroup(const NcclSetup& setup);
  ~NcclGroup();

  void connect(const std::string& id);  // with the other processes; throws Error, MissingPeers behind the deadline
  int total() const { return total_; }
  const std::shared_ptr<NcclRank>& rank(int local) const { return ranks_[local]; }
  void notify() { wake_.notify_all(); }  // something is pending
  void tell(int local, std::function<void(std::exception_ptr)> failed);
  void abort(const std::string& reason);

 private:
  void watch();
  void look_at(int local);
  void fail(int local, const std::exception_ptr& error);
  MissingPeers late(int local, const NcclRank::Late& operation);

  const int total_;
  const std::chrono::milliseconds deadline_;
  const std::function<void()> check_peers_;
  std::vector<std::shared_ptr<NcclRank>> ranks_;  // shared with registrations, which may outlive the communicators
  std::mutex listeners_mutex_;
  std::vector<std::function<void(std::exception_ptr)>> listeners_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::thread watcher_;
};

}  // namespace zeroplan
