#pragma once
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "api/training_run.h"

namespace zeroplan {

// The run options of a command line, and the run itself.
class RunArguments {
 public:
  void declare(CLI::App& command);
  // Throws before data is read where an option is out of range.
  void check() const;
  // Trains `plan` as the options say: data, progress, metrics, trace, export. Ctrl-C ends it at a step border, and what was asked for is still exported.
  void execute(const Plan& plan) const;
  bool wants_eval() const { return !eval_data_.empty() || !eval_tokens_.empty() || eval_fraction_ > 0; }

 private:
  RunOptions finish() const;
  std::unique_ptr<DataSource> open_data(const Plan& plan) const;
  std::unique_ptr<DataSource> open_eval_data(const Plan& plan) const;

  RunOptions options_;
  std::string data_, tokens_, eval_data_, eval_tokens_, metrics_, trace_, export_, betas_ = "0.9,0.999", schedule_ = "constant", device_ = "cpu";
  int token_bytes_ = 1;
  double eval_fraction_ = 0;
  bool check_nan_ = false, check_memory_ = false;
};

}  // namespace zeroplan
