#pragma once
// A training run on a compiled plan: data order, learning-rate schedule, evaluation.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/exec/executor.h"

namespace zeroplan {

enum class Schedule : uint8_t { constant, linear, cosine };

// torch: epsilon joins the root of the corrected second moment, and adamw decays before the step. hugging_face: that of the uncorrected
// one, and adamw decays after the step.
enum class AdamForm : uint8_t { torch, hugging_face };
std::string adam_form_name(AdamForm form);
std::optional<AdamForm> parse_adam_form(std::string_view name);

// Options of `zeroplan run` that the numbers depend on, same names and defaults.
struct RunOptions {
  int64_t steps = 0;   // 0: by epochs
  int64_t epochs = 0;  // 0 and steps 0: one epoch
  bool shuffle = false;
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  AdamForm adam_form = AdamForm::torch;
  std::vector<std::string> no_decay;  // patterns
  double clip = 0;
  Schedule schedule = Schedule::constant;
  int64_t warmup = 0;  // steps
  uint64_t seed = 0;
  int64_t eval_every = 0;  // steps; 0: only after the last step, if there is evaluation data
};

struct RunEvent {
  const StepReport* step = nullptr;
  const EvalReport* eval = nullptr;  // after `step`, where this step is followed by an evaluation
  int64_t eval_unused = 0;           // samples of the evaluation data that `eval` leaves out, as they fill no micro-batch
  double lr = 0;
  int64_t steps = 0;  // of the whole run
};

struct RunResult {
  int64_t steps_done = 0;
  bool stopped = false;  // by request_stop
  double last_loss = 0;
  std::optional<EvalReport> last_eval;
};

// Throws ErrorList naming each value out of range, before data is read.
void check_run_options(const RunOptions& options);

// What the kernels are given in step 1 … `steps` for a plan with `optimizer`.
RunScalars step_scalars(const RunOptions& options, const std::string& optimizer, int64_t step, int64_t steps);

// The learning rate of step 1 … `steps`: warm-up rises linearly over the first `warmup` steps; linear and cosine then fall to 0 at the end.
double learning_rate(const RunOptions& options, int64_t step, int64_t steps);

// What run_training would refuse, known before anything is allocated: too little data, patterns that match nothing, no evaluation program.
// `eval_data`: null where there is none.
void check_run(const Plan& plan, const DataSource& data, const DataSource* eval_data, const RunOptions& options);

// The samples that every epoch leaves out, as a sentence; empty where there are none.
std::string left_out(const Plan& plan, const DataSource& data);

// Trains until the steps are done or a stop is asked for. `observe` is called after every step, on the calling thread.
RunResult run_training(Executor& executor, const DataSource& data, const DataSource* eval_data, const RunOptions& options,
                       const std::function<void(const RunEvent&)>& observe);

}  // namespace zeroplan
