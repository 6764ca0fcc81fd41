#include "tools/processes.h"

#include <algorithm>
#include <csignal>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/split.h"
#include "tools/console.h"

namespace zeroplan {
namespace {

constexpr auto kLauncher = std::chrono::seconds(5);  // for it to end the processes of a job that has failed

}  // namespace

Processes::Processes(const std::string& command) : launch_(find_launch()), shares_(command == "train" || command == "run") {
  if (launch_ && launch_->rank > 0) silence_console();
  if (launch_ && launch_->rank == 0 && !shares_)
    complain(fmt::format("{} started {} processes; this command works in one, the others have nothing to do", launch_->by, launch_->size));
}

void Processes::join() {
  if (!launch_ || !shares_) return;
  job_ = start_mpi();
  if (job_->size() == launch_->size && job_->rank() == launch_->rank) return;
  throw Error(
      fmt::format("{} calls this process {} of {}, MPI calls it {} of {}; start it with the launcher of the MPI that it was built with: "
                  "mpirun, or srun --mpi=pmix",
                  launch_->by, launch_->rank, launch_->size, job_->rank(), job_->size()));
}

void Processes::require_equal(const std::vector<std::string>& settings) const {
  if (!job_) return;
  const std::vector<std::string> first = split(job_->broadcast(fmt::format("{}", fmt::join(settings, "\n"))), '\n');
  for (size_t i = 0; i < std::max(first.size(), settings.size()); ++i) {
    const std::string there = i < first.size() ? first[i] : "nothing", here = i < settings.size() ? settings[i] : "nothing";
    if (there != here)
      throw Error(
          fmt::format("rank 0 has {}, rank {} has {}; give all processes the same options and the same data", there, job_->rank(), here),
          {.rank = job_->rank()});
  }
}

void Processes::finish() const {
  if (job_) job_->meet();
}

int Processes::fail(const Failure& failure) const {
  if (!job_) {
    // Most often rank 0 says the same, and the launcher ends this process when it has.
    if (launch_ && launch_->rank > 0) std::this_thread::sleep_for(kLauncher);
    complain(failure.words);
    return failure.code;
  }
  std::signal(SIGTERM, SIG_IGN);  // the launcher may have seen a rank end already
  for (const std::string& line : job_->last_words(failure.words, failure.names_rank)) complain(line);
  std::signal(SIGTERM, SIG_DFL);
  job_->end_all(failure.code);
  return failure.code;
}

}  // namespace zeroplan
