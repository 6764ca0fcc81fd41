#pragma once
// MPI itself, and the one failure that ends all ranks. Only runtime/mpi includes this.
#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string>

#include "runtime/mpi/mpi_requests.h"

namespace zeroplan {

class MpiState {
 public:
  MpiState();
  ~MpiState();
  MpiState(const MpiState&) = delete;
  MpiState& operator=(const MpiState&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm new_comm();                    // of all ranks; errors are returned
  void abort(const std::string& reason);  // tells all ranks; the first reason wins
  void throw_if_aborted();                // PeerFailure with the reason, of whichever rank; looks for messages of other ranks

 private:
  int rank_ = 0, size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL;
  std::mutex mutex_;
  std::atomic<bool> aborted_{false};
  std::string reason_;
};

}  // namespace zeroplan
