#pragma once
// MPI itself, and how each rank of the job ends. Only runtime/mpi includes this.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/mpi/mpi_requests.h"
#include "runtime/mpi/peer_processes.h"

namespace zeroplan {

// Why a rank stops before the end, from the least telling reason to the most.
enum class Fate : uint8_t {
  none,
  told,    // of another rank's failure
  missed,  // a peer did not come to a collective
  failed,  // by itself
};

struct Notice {
  Fate fate = Fate::none;
  bool names_rank = false;  // the words do
  std::string words;
};

class MpiState {
 public:
  MpiState();
  ~MpiState();
  MpiState(const MpiState&) = delete;
  MpiState& operator=(const MpiState&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool on_this_machine(int rank) const { return peers_.on_this_machine(rank); }
  MPI_Comm new_comm();                     // of all ranks; errors are returned
  bool missed() const { return missed_; }  // whether some wait has thrown MissingPeers
  // Sends this rank's notice to all others and hears theirs, half a second at most. Once: the first call wins. Safe from any thread, as is
  // the next one. MPI must not be called any more, but for MPI_Abort.
  void stop(const Notice& notice);
  // Takes the notices that have come. PeerFailure where this rank has stopped, or must as another has, which is told so.
  void throw_if_stopped();
  // By rank; after stop().
  std::vector<Notice> notices();
  // Until the messages are there; sleeps between looks, so that kernels have the core. Throws PeerFailure, and MissingPeers where a peer's
  // process has ended or `deadline` (none: 0) has passed.
  void wait(MpiRequests& requests, std::chrono::milliseconds deadline, int peer = -1);

 private:
  void tell_and_hear(const Notice& notice, int only);  // mutex held, as for the next one
  void listen();
  [[noreturn]] void miss(const std::vector<int>& ranks, const std::string& why);
  [[noreturn]] void miss_late(const std::vector<int>& ranks, std::chrono::milliseconds deadline);

  int rank_ = 0, size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL;
  PeerProcesses peers_;
  std::atomic<bool> missed_{false};
  std::mutex mutex_;
  std::vector<Notice> notices_;  // by rank
  std::string sent_;             // lives as long as the messages
  std::vector<MPI_Request> sends_;
};

}  // namespace zeroplan
