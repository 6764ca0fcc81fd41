#pragma once
// Runs a plan: each rank of this process on a thread. Where several processes share the ranks, all make the same calls in the same order
// with the same arguments. One loop over steps per rank: no allocation, no look-up by name, no decision.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/host_tensor.h"
#include "runtime/data/data_source.h"
#include "runtime/exec/backend.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

struct StepReport {
  int64_t step = 0;  // number of the optimizer step, from 1
  int64_t samples = 0;
  double loss = 0, weight = 0;
  double grad_norm = 0, clipped_norm = 0, clip_factor = 1;
  bool skipped = false;
  double loss_scale = 0;  // that the gradients were computed with; 0: the plan has none
  std::string overflow;   // skipped as this parameter's gradient, of the first that backward makes, is not finite; empty: none
  bool stopped = false;   // a stop was asked for; nothing was updated
  double step_ms = 0, compute_ms = 0, exposed_comm_ms = 0, data_ms = 0;  // of the slowest rank
  int slowest_rank = 0;
  int64_t arena_high_water = 0;  // bytes touched per rank, where ExecutorOptions::check_memory
};

struct EvalReport {
  double loss = 0, weight = 0;  // a mean of no label is NaN
  int64_t samples = 0;
};

// Faults and delays for tests, called around each step of each rank. May sleep or throw.
using StepHook = std::function<void(int rank, Program program, int step_index, const Step& step)>;

using MakeBackend = std::function<Backend(const Plan& plan, std::chrono::milliseconds collective_deadline)>;

struct ExecutorOptions {
  int64_t collective_deadline_ms = 60000;
  bool check_memory = false;  // pattern fill and canaries: measures the high-water mark, throws if a step writes outside its tensors' arena
  bool poison_padding = false;  // padding is NaN instead of 0
  bool check_nan = false;       // every floating-point output is looked at: the first op that made a NaN or Inf is named
  bool cuda_graph = true;       // on a GPU, issue the kernels between two collectives as one graph
  bool trace = false;
  int64_t trace_steps = 0;  // first optimizer steps that a trace keeps; 0: as many as 65,536 events per stream hold, one at least
  StepHook before_step, after_step;
  MakeBackend backend;  // none: make_cpu_backend
};

struct TraceEvent {
  int rank;
  Program program;
  int step_index;
  int64_t begin_ns, end_ns;  // from the executor's start
  int64_t train_step, micro_batch;
};

// Of several processes, by one clock: in order of time, up to the last step that all of them have.
std::vector<TraceEvent> join_traces(const std::vector<std::vector<TraceEvent>>& traces);

// Gives the values of a parameter: `count` elements from element `first`, in wide_dtype of the plan's precision, into `to`.
using WeightReader = std::function<void(int parameter, int64_t first, int64_t count, void* to)>;

class Executor {
 public:
  // Verifies nothing: run verify_plan first. Allocates every arena, starts the ranks, compares the plan's digest among them and runs
  // `load`. `plans`: one for all ranks, or one per rank of this process (for tests of disagreement).
  Executor(std::vector<std::shared_ptr<const Plan>> plans, const WeightReader& weights, ExecutorOptions options);
  ~Executor();

  const Plan& plan() const;
  // One optimizer step on samples [first_sample, first_sample + B) of the epoch given by `order` (null: in order), or on those up to the
  // end of the data where they are fewer and the plan takes_part_batches. Scalars: lr and the rest for this step.
  StepReport train_step(const DataSource& data, int64_t first_sample, const int64_t* order, const RunScalars& scalars);
  // As train_step without the update: the gradients stay readable, carried ones (runtime/plan/plan.h) until anything else is run. For
  // looking at gradients: all ranks must be in this process.
  StepReport accumulate(const DataSource& data, int64_t first_sample, const int64_t* order, const RunScalars& scalars);
  // Over all samples; without takes_part_batches, over those of full micro-batches.
  EvalReport evaluate(const DataSource& data);
  // Forward plans: runs eval_step on micro-batches [0, V) from sample `first_sample` of the epoch given by `order` (null: in order), and
  // hands out each output of each, contiguous. All ranks must be in this process.
  void predict(const DataSource& data, int64_t first_sample, const int64_t* order,
               const std::function<void(int64_t micro_batch, const PlanOutput& output, const HostTensor& values)>& take);
  // Sum over the window of the parameter's gradient, not divided by the weight; after accumulate(). Throws Error where a carried gradient
  // is no longer there.
  HostTensor gradient(int parameter);
  // Runs `save` for one parameter; for several use export_parameters.
  HostTensor weights(int parameter);
  // Runs `save`: each parameter once, contiguous, in unit order, in the process of rank 0 alone; the bytes are valid during the call only.
  // Of a parameter in 16 bits it is the master; of one that is not trained, what the model's file has.
  // What `take` throws comes back from here, and the executor goes on.
  void export_parameters(const std::function<void(int parameter, const void* data)>& take);
  // Sets weight-decay multipliers by parameter index (default 1). Between steps only.
  void set_decay(const std::vector<double>& multipliers);
  void request_stop();  // async-signal-safe; the ranks agree on it in the next update
  // In order of time. All streams end with the same whole optimizer step (or evaluation after it), the last that had room in each.
  std::vector<TraceEvent> take_trace();
  int64_t now_ns() const;                  // by the clock of these events
  int64_t arena_bytes() const;             // per rank
  const std::string& collectives() const;  // Backend::collectives
  const std::string& products() const;     // Backend::products

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zeroplan
