#pragma once
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "api/training_run.h"
#include "api/zeroplan.h"
#include "tools/metrics_writer.h"
#include "tools/output_files.h"
#include "tools/processes.h"

namespace zeroplan {

struct RunData {
  std::unique_ptr<DataSource> training, evaluation;  // evaluation: null where none was asked for
};

constexpr int kMostThreads = 1024;  // of one process, a rank each
// Throws Error where so many ranks do not run in one process, or are not those that a launcher started; `from` says where their number
// stands: "--ranks".
void check_local_ranks(int ranks, const std::string& from);
void check_ranks(int ranks, const std::string& from, const Processes& processes);

// The run options of a command line, and the run itself.
class RunArguments {
 public:
  // `processes`: those that share the run; they outlive this.
  void declare(CLI::App& command, const Processes& processes);
  // Before anything is read, throws where an option is out of range, data is not there, or an output would overwrite an input: `inputs`, or
  // data.
  void check(const std::vector<NamedFile>& inputs) const;
  // The data, checked against the plan and the options; throws before anything is allocated for the run.
  RunData open(const Plan& plan) const;
  // Trains `plan` as the options say: data, progress, metrics, trace, export. Ctrl-C, a lost terminal and a standard output that cannot be
  // written end it at a step border, and what was asked for is still exported, as it is where metrics or the trace cannot be written; those
  // are an Error afterwards. `weights`: see make_executor.
  void execute(const Plan& plan, const RunData& data, std::shared_ptr<WeightFiles> weights = nullptr) const;
  bool wants_eval() const { return !eval_data_.empty() || !eval_tokens_.empty() || eval_fraction_ > 0; }

 private:
  RunOptions finish() const;
  RunOptions finish(const Plan& plan) const;  // with what the model's own optimizer states
  std::vector<NamedFile> outputs() const;
  // What all ranks must have alike, one a line.
  std::vector<std::string> settings(const Plan& plan, const RunData& data) const;
  void export_model(Executor& executor) const;
  int64_t train(Executor& executor, const RunData& data, MetricsWriter& metrics) const;  // returns the steps done
  std::unique_ptr<DataSource> open_data(const Plan& plan) const;
  std::unique_ptr<DataSource> open_eval_data(const Plan& plan) const;

  CLI::App* command_ = nullptr;
  const Processes* processes_ = nullptr;
  RunOptions options_;
  std::string data_, tokens_, eval_data_, eval_tokens_, metrics_, trace_, export_, betas_ = "0.9,0.999", schedule_ = "constant",
                                                                                   adam_form_ = "torch", cuda_graph_ = "on";
  int token_bytes_ = 1;
  int64_t trace_steps_ = 0;
  double eval_fraction_ = 0;
  bool check_nan_ = false, check_memory_ = false;
};

}  // namespace zeroplan
