#pragma once
// What the ranks of one executor share. Only runtime/exec includes this.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/exec/backend.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/rank_state.h"

namespace zeroplan {

// One piece of work for all ranks. Pointers live until every rank has finished.
struct Job {
  enum class Kind : uint8_t { load, window, eval_window, program, close } kind{};
  Program program{};  // Kind::program
  const DataSource* data = nullptr;
  int64_t first_sample = 0;
  const int64_t* order = nullptr;
  int64_t samples = 0;        // of this window
  int64_t micro_batches = 0;  // that hold one of them at least
  bool update = false;
  bool clear_gradients = false;  // what an earlier accumulate() left
  RunScalars scalars;
};

class Core {
 public:
  Core(std::vector<std::shared_ptr<const Plan>> plans, const WeightReader& weights, ExecutorOptions options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Hands the job to all ranks and waits. Throws the failure of whichever rank failed first; from then on always that one.
  void run(const Job& job);
  // Body of a rank's thread.
  void serve(Rank& rank);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void throw_if_failed();
  // Keeps the first failure and ends the collectives of all ranks. `where` adds what the error does not know.
  void fail(const ErrorContext& where, std::exception_ptr error);
  // Waits for the ranks' threads to end; false where one is stuck in foreign code.
  bool wait_for_exit(std::chrono::milliseconds limit);

  const Plan& plan() const { return *plan_; }
  // The ranks of this process: one by its place here, and by its number among all.
  int local_ranks() const { return static_cast<int>(backend_.ranks.size()); }
  Rank& local_rank(int i) { return *ranks_[i]; }
  Rank& rank_at(int number);  // throws Error where another process has it
  int64_t now_ns() const;
  const Backend& backend() const { return backend_; }

  ExecutorOptions options;
  std::vector<std::vector<UnitExtent>> extents;  // by unit
  std::atomic<bool> stop{false};
  const std::function<void(int, const void*)>* take_parameter = nullptr;  // during `save`, on rank 0
  WeightReader read_weights;
  std::mutex read_mutex;  // readers need not be thread-safe

 private:
  void work(Rank& rank, const Job& job);
  void watch_collectives();
  std::string where_is(int rank) const;  // empty where another process has it
  std::string reason_of(std::exception_ptr error) const;

  std::vector<std::shared_ptr<const Plan>> plans_;  // those that the ranks hold
  const Plan* plan_;
  std::string digest_;  // of the plan
  Backend backend_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable posted_, finished_;
  Job job_;
  uint64_t jobs_ = 0;
  int done_ = 0, exited_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // an Error with its place, or the PeerFailure of a rank elsewhere
};

// Thrown through a rank's job once some rank has failed; the failure itself is with the core.
struct Stopped {};

// The steps of a job on one rank (run_program.cc, run_job.cc). Throws Stopped where any rank has failed. What stands between issue and
// finish happens while the device works.
void run_program(Rank& rank, Program program, bool idle, int contributors);
void issue_program(Rank& rank, Program program, bool idle, int contributors);
void finish_program(Rank& rank, Program program);
void run_window(Rank& rank, const Job& job);
void clear_gradients(Rank& rank);
// What the ranks measured in the last window (rank_times.cc), sent to all where processes share the ranks.
void prepare_times(Rank& rank);
void share_times(Rank& rank);
RankTimes times_of(Core& core, int rank);
// Does anybody look at single steps? On the host all are noted, elsewhere each note holds up the device.
inline bool observed(const Rank& rank) {
  const ExecutorOptions& options = rank.core->options;
  return options.before_step || options.after_step || options.trace || options.check_nan;
}
// load_unit and export_unit (host_steps.cc), and the constants.
void run_host_step(PreparedStep& step);
void load_constants(Rank& rank);
// The step's place for messages, all fields known (place.cc).
ErrorContext place_of(const Rank& rank, const Step& step, int index, Program program);
ErrorContext place_of(const PreparedStep& step);
// What `other` differs in from `first`, the first entry found; empty where equal (plan_difference.cc).
std::string plan_difference(const Plan& first, const Plan& other);
void require_equal_plans(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<RankBackend>& ranks);
// Compares this process's plan, with the digest `own`, with that of rank 0, wherever that runs. All ranks come here.
void compare_plans(Rank& rank, const std::string& own);

}  // namespace zeroplan
