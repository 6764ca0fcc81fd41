#pragma once
// This process as a rank of an MPI job: every rank of the plan is a process, with one rank each.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace zeroplan {

// MPI from start_mpi to the object's end. All ranks make the same calls in the same order, from one thread, but for listen, tell,
// last_words and end_all. They wait as long as all processes live, and throw PeerFailure where a rank has failed, MissingPeers where a
// process is gone.
class MpiJob {
 public:
  virtual ~MpiJob() = default;  // MPI_Finalize, where nothing failed
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // A communicator of all ranks; the job must outlive it. An operation that a peer does not join within `deadline` fails, naming the
  // missing ranks. `slot_bytes`: what each peer sends to a reduction at a time; the communicator keeps that many for each rank.
  virtual std::unique_ptr<Communicator> new_communicator(std::chrono::milliseconds deadline, int64_t slot_bytes) = 0;
  virtual void meet() = 0;
  // Says to all ranks that this one has failed, in words that name it; the first time counts. Then come last_words and end_all alone. Safe
  // from any thread.
  virtual void tell(const std::string& words) = 0;
  virtual void listen() = 0;                                    // throws PeerFailure where another rank has failed; safe from any thread
  virtual std::string broadcast(const std::string& bytes) = 0;  // what rank 0 gave
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;  // on rank 0, by rank; empty on the others
  // Nanoseconds that the steady clock of each rank is ahead of rank 0's, on rank 0; empty on the others.
  virtual std::vector<int64_t> clock_offsets() = 0;

  // When something failed here, a PeerFailure too: tells all ranks, hears what they say within half a second, and returns what this
  // process has to print. That is nothing where another rank failed first; else a line for each rank that failed by itself at the same
  // time, the own one last. `names_rank`: `words` say which rank this is.
  virtual std::vector<std::string> last_words(const std::string& words, bool names_rank) = 0;
  // Then ends all processes of the job, this one too, by MPI_Abort; where another rank has to speak, after it should have.
  // Does not return.
  virtual void end_all(int code) = 0;
};

// Once in a process. Throws Error where MPI does not take calls from several threads at once, or is not part of this build.
std::unique_ptr<MpiJob> start_mpi();

}  // namespace zeroplan
