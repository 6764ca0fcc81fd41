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
  // `scratch`: bytes for what peers send to a reduction, shared among them.
  MpiCommunicator(std::shared_ptr<MpiState> state, std::chrono::milliseconds deadline, int64_t scratch);

  int rank() const override { return state_->rank(); }
  int size() const override { return state_->size(); }
  void abort(const std::string& reason) override { state_->abort(reason); }

 private:
  void carry_out(const CollectiveCall& call) override;
  void gather(const CollectiveCall& call);
  void reduce(const CollectiveCall& call);
  void sum(const CollectiveCall& call);
  void broadcast_from(const CollectiveCall& call);
  void meet();

  template <typename Done>
  void wait_until(const Done& done);
  char* slot(int peer) const { return scratch_.get() + peer * slot_bytes_; }

  std::shared_ptr<MpiState> state_;
  std::chrono::milliseconds deadline_;
  MPI_Comm comm_;
  int64_t slot_bytes_;
  std::unique_ptr<char[]> scratch_;
  MpiRequests requests_;
};

}  // namespace zeroplan
