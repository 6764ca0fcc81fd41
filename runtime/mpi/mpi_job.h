#pragma once
// This process as a rank of an MPI job: every rank of the plan is a process, with one rank each.
#include <chrono>
#include <memory>

#include "runtime/comm/communicator.h"

namespace zeroplan {

class MpiState;

// MPI from its start to its end; once in a process.
class MpiJob {
 public:
  // Throws Error where MPI gives no calls from several threads at once.
  MpiJob();
  // Ends MPI where all went well. After abort() the process must end with an exit code other than 0: the launcher then ends the others.
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  int rank() const;
  int size() const;
  // A communicator of all ranks; all of them call this in the same order. The job must outlive it. `scratch`: bytes that a reduction may
  // use. An operation that a peer does not join within `deadline` fails, naming the peers that are missing.
  std::unique_ptr<Communicator> new_communicator(std::chrono::milliseconds deadline, int64_t scratch);

 private:
  std::shared_ptr<MpiState> state_;  // shared with the communicators
};

}  // namespace zeroplan
