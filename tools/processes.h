#pragma once
// The processes that a launcher started, seen from one of them.
#include <memory>
#include <string>
#include <vector>

#include "runtime/mpi/mpi_job.h"
#include "tools/launch.h"

namespace zeroplan {

// What ends a command before its time.
struct Failure {
  std::string words;
  int code = 1;             // of the process
  bool names_rank = false;  // the words do
};

class Processes {
 public:
  // Of the command's first word: ranks are shared out by train and run alone; in every other command rank 0 works by itself. From here on
  // the others write nothing to standard output.
  explicit Processes(const std::string& command);
  // Starts MPI where this process is one of several that share ranks. Throws Error.
  void join();

  const std::optional<Launch>& launch() const { return launch_; }
  bool idle() const { return launch_ && !shares_ && launch_->rank > 0; }  // nothing to do here
  bool first() const { return !launch_ || launch_->rank == 0; }           // writes the files of the run
  MpiJob* job() const { return job_.get(); }                              // nullptr: all ranks are threads of this process

  // All ranks must have the same settings, one a line. Throws Error with the first that differs.
  void require_equal(const std::vector<std::string>& settings) const;
  // When the work is done: waits for the others.
  void finish() const;
  // Says what this process has to say, and ends the others. Returns the process's exit code.
  int fail(const Failure& failure) const;

 private:
  std::optional<Launch> launch_;
  bool shares_ = false;
  std::unique_ptr<MpiJob> job_;
};

}  // namespace zeroplan
