#pragma once
// Collectives by messages between pairs of ranks, so that sums have the order that every communicator keeps. Only runtime/mpi includes
// this.
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/comm/queued_communicator.h"
#include "runtime/mpi/mpi_state.h"

namespace zeroplan {

class MpiCommunicator : public QueuedCommunicator {
 public:
  // `slot_bytes`: for what one peer sends to a reduction at a time.
  MpiCommunicator(std::shared_ptr<MpiState> state, std::chrono::milliseconds deadline, int64_t slot_bytes);

  int rank() const override { return state_->rank(); }
  int size() const override { return state_->size(); }
  void abort(const std::string& reason) override { state_->stop({state_->missed() ? Fate::missed : Fate::failed, true, reason}); }

 private:
  void carry_out(const CollectiveCall& call) override;
  void gather(const CollectiveCall& call);
  void reduce(const CollectiveCall& call);
  void sum(const CollectiveCall& call);
  void broadcast_from(const CollectiveCall& call);
  void meet();

  void wait(int peer = -1);
  char* slot(int peer) const { return scratch_.get() + peer * slot_bytes_; }

  std::shared_ptr<MpiState> state_;
  std::chrono::milliseconds deadline_;
  MPI_Comm comm_;
  int64_t slot_bytes_;
  std::unique_ptr<char[]> scratch_;
  MpiRequests requests_;
};

}  // namespace zeroplan
