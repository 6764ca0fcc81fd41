#pragma once
// One rank's part of an NCCL communicator. Only runtime/cuda includes this.
#include <nccl.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "runtime/comm/local_group.h"
#include "runtime/cuda/cuda_stream.h"

namespace zeroplan {

void check_nccl(ncclResult_t status, const char* call);

// NCCL is called with one lock held, so that nothing uses what abort has freed. Safe from any thread.
class NcclRank : public std::enable_shared_from_this<NcclRank> {
 public:
  NcclRank(int rank, std::shared_ptr<Device> device, LocalGroup& group, std::chrono::milliseconds deadline,
           std::function<void()> check_peers);
  ~NcclRank();  // after finish() or end()
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  int rank() const { return rank_; }
  Device& device() const { return *device_; }
  ncclComm_t* handle() { return &comm_; }  // for what makes it

  // status = issue(communicator), then until NCCL has taken it. Throws Error with NCCL's words, MissingPeers behind the deadline, the
  // reason of an abort, and what check_peers throws.
  template <typename Fn>
  void call(const char* name, const Fn& issue) {
    settle(name, locked(issue));
  }
  void settle(const char* name, ncclResult_t status);
  std::shared_ptr<void> share(void* data, int64_t bytes);

  // Around the issuing of an operation, which then is pending until its stream is through with it.
  void begin(const CollectiveCall& call);
  void issued();

  struct Late {
    uint64_t number = 0;
    CollectiveCall call;
  };
  // Forgets what is done. Returns the operation that the stream has stood at for the deadline; throws Error where NCCL or the device has
  // failed.
  std::optional<Late> look();
  void check();  // throws Error where NCCL has failed
  bool pending();
  bool has_come_to(uint64_t number);  // the stream, to its operation of that number

  void fail_stream(const std::exception_ptr& error);
  // Aborts what is under way, on a thread of its own: it may wait for other ranks' ends.
  void end(const std::exception_ptr& why);
  void finalize();  // begins an orderly end
  void destroy();   // and waits for it

 private:
  struct Pending {
    std::unique_ptr<CudaEvent> begun, done;
    CollectiveCall call;
    std::optional<std::chrono::steady_clock::time_point> since;  // the watch has seen it begun
  };
  static constexpr size_t kPending = 128;

  template <typename Fn>
  ncclResult_t locked(const Fn& issue) {
    const std::lock_guard lock(mutex_);
    require_live();
    return issue(comm_);
  }
  void require_live();
  void require_well(const CollectiveCall& call);
  Pending& at(uint64_t number) { return pending_[number % kPending]; }
  void forget_done();

  const int rank_;
  const std::shared_ptr<Device> device_;
  LocalGroup& group_;
  const std::chrono::milliseconds deadline_;
  const std::function<void()> check_peers_;  // as NcclSetup has it
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  bool ended_ = false;
  std::shared_ptr<StreamError> stream_;  // of the stream that operations are issued to
  std::array<Pending, kPending> pending_;
  uint64_t done_ = 0, issued_ = 0;  // pending: the numbers in between
  std::thread aborting_;
};

}  // namespace zeroplan
