#pragma once
#include <chrono>

#include "api/training_run.h"

namespace zeroplan {

// A progress bar on a terminal; plain lines at growing distance otherwise.
class Progress {
 public:
  // `launched`: as one of several processes, which have a terminal of their own, whatever their output is.
  Progress(const Plan& plan, bool launched);
  void show(const RunEvent& event);
  void finish(const RunResult& result);

 private:
  std::string details(const RunEvent& event) const;
  bool terminal_;
  bool open_line_ = false;
  int64_t skipped_ = 0;  // steps
  int64_t tokens_per_sample_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace zeroplan
