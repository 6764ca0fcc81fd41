#pragma once
#include <string>
#include <string_view>

#include "api/training_run.h"

namespace zeroplan {

// One JSON line per step: step, loss (over the whole batch, before the update), weight, eval_loss, eval_samples and
// eval_samples_left_out where evaluated, grad_norm, clipped_norm, clip_factor, with fp16 loss_scale and, where it made the step be skipped,
// overflow (a parameter), skipped, lr, step_ms, compute_ms, exposed_comm_ms, data_ms,
// samples_per_second, tokens_per_second (integer-input models), slowest_rank, arena_bytes (planned, per rank), arena_high_water (touched; 0
// unless --check-memory). Numbers carry 17 digits.
class MetricsWriter {
 public:
  // An empty path writes nothing. Throws Error where another run is writing the file.
  MetricsWriter(const std::string& path, const Plan& plan);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;
  // A line that cannot be written is the end of the file, which is said at once; the run goes on. Never throws for that.
  void write(const RunEvent& event);
  // The step from which on the file has no lines, as a sentence; empty where it has all.
  const std::string& problem() const { return problem_; }

 private:
  void take_file() const;
  void append(std::string_view line, int64_t step);
  void give_up(int64_t step, int error);
  int file_ = -1;
  int64_t whole_ = 0;  // bytes of whole lines
  std::string problem_;
  std::string path_;
  int64_t tokens_per_sample_;
  int64_t arena_bytes_ = 0;
};

// Elements per sample of the first integer input that is no label: its sequence length. 0 for models without one.
int64_t tokens_per_sample(const Plan& plan);

}  // namespace zeroplan
