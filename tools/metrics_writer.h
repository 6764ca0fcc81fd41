#pragma once
#include <string>

#include "api/training_run.h"

namespace zeroplan {

// One JSON line per step: step, loss (over the whole batch, before the update), weight, eval_loss, eval_samples and
// eval_samples_left_out where evaluated, grad_norm, clipped_norm, clip_factor, skipped, lr, step_ms, compute_ms, exposed_comm_ms, data_ms,
// samples_per_second, tokens_per_second (integer-input models), slowest_rank, arena_bytes (planned, per rank), arena_high_water (touched; 0
// unless --check-memory). Numbers carry 17 digits.
class MetricsWriter {
 public:
  // An empty path writes nothing. Throws Error where another run is writing the file.
  MetricsWriter(const std::string& path, const Plan& plan);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;
  void write(const RunEvent& event);

 private:
  void take_file() const;
  int file_ = -1;
  std::string path_;
  int64_t tokens_per_sample_;
  int64_t arena_bytes_ = 0;
};

// Elements per sample of the first integer input that is no label: its sequence length. 0 for models without one.
int64_t tokens_per_sample(const Plan& plan);

}  // namespace zeroplan
