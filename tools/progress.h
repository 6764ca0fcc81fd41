#pragma once
#include <chrono>

#include "api/training_run.h"

namespace zeroplan {

// A progress bar on a terminal; plain lines at growing distance otherwise.
class Progress {
 public:
  explicit Progress(const Plan& plan);
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
