// A window of micro-batches on one rank.
#include <algorithm>

#include "runtime/exec/core.h"
#include "runtime/plan/report.h"

namespace zeroplan {
namespace {

struct Samples {
  int64_t first = 0;
  const int64_t* order = nullptr;
  int64_t count = 0;  // that count: the first ones of the micro-batch
};

// A micro-batch that is not full is completed by its last sample.
Samples samples_of(Rank& rank, const Job& job, int64_t micro_batch) {
  const auto size = static_cast<int64_t>(rank.positions.size());
  Samples samples{job.first_sample + micro_batch * size, job.order, std::min(size, job.samples - micro_batch * size)};
  if (samples.count == size) return samples;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t at = samples.first + std::min(i, samples.count - 1);
    rank.positions[i] = job.order ? job.order[at] : at;
  }
  return {0, rank.positions.data(), samples.count};
}

// Boolean [samples].
void fill_mask(const TensorView& mask, int64_t samples, int64_t count) {
  for (int64_t i = 0; i < samples; ++i) static_cast<uint8_t*>(mask.data)[i] = i < count;
}

void read_input(Rank& rank, const Job& job, int input, const Samples& samples) {
  const auto size = static_cast<int64_t>(rank.positions.size());
  const TensorView& to = rank.host_inputs[rank.filling][input];
  if (rank.plan->inputs[input].mask) return fill_mask(to, size, samples.count);
  job.data->read(input, samples.first, size, samples.order, to);
  if (rank.core->options.check_nan) check_input(to, rank.plan->inputs[input].name);
}

// What goes wrong is with the core.
void read_inputs(Rank& rank, const Job& job, Program program, int64_t micro_batch) {
  const int64_t before = rank.core->now_ns();
  const Samples samples = samples_of(rank, job, micro_batch);
  int input = 0;
  try {
    for (; input < static_cast<int>(rank.inputs.size()); ++input) read_input(rank, job, input, samples);
  } catch (...) {
    const ErrorContext place{.rank = rank.index,
                             .step = rank.scalars.step,
                             .micro_batch = micro_batch,
                             .plan_op = 0,
                             .program = std::string(program_name(program)),
                             .op = "read of input " + rank.plan->inputs[input].name,
                             .unit = "none",
                             .parameters = "none"};
    rank.core->fail(place, std::current_exception());
  }
  rank.data_ns += rank.core->now_ns() - before;
}

// To the device, in the order of its compute stream. The next micro-batch is read to the other place.
void send_inputs(Rank& rank) {
  if (rank.host) return;
  for (size_t i = 0; i < rank.inputs.size(); ++i)
    rank.compute().copy(rank.inputs[i].data, rank.host_inputs[rank.filling][i].data,
                        tensor_span_bytes(rank.plan->tensors[rank.plan->inputs[i].tensor]));
  rank.filling = 1 - rank.filling;
}

void reset_times(Rank& rank) {
  rank.exposed_ns = rank.data_ns = rank.step_ns = 0;
  for (Lane& lane : rank.lanes) lane.compute_ns = 0;
}

void raise_stop_flag(Rank& rank) {
  if (rank.plan->roles.metrics == kNone || !rank.core->stop.load()) return;
  const double raised = 1;
  auto* metrics = reinterpret_cast<double*>(rank.address(rank.plan->tensors[rank.plan->roles.metrics]));
  rank.write(metrics + metrics_stop(rank.plan->header.micro_batches), &raised, sizeof raised);
}

}  // namespace

void clear_gradients(Rank& rank) {
  for (const PlanUnit& unit : rank.plan->units) {
    const int32_t shard = unit.gradient_tensor;  // a carried one starts from zero anyway
    if (shard != kNone && rank.plan->tensors[shard].arena == Arena::state) rank.zero(shard);
  }
  rank.zero(rank.plan->roles.metrics);
}

void run_window(Rank& rank, const Job& job) {
  const int64_t begin = rank.core->now_ns(), n = rank.plan->header.ranks, v = job.micro_batches;
  const Program program = job.kind == Job::Kind::eval_window ? Program::eval_step : Program::micro_step;
  reset_times(rank);
  rank.scalars = job.scalars;
  rank.scalars.momentum = rank.plan->header.momentum;
  if (job.clear_gradients) clear_gradients(rank);
  bool read = false;  // the micro-batch, while the device was at work on the one before
  for (int64_t first = 0; first < v; first += n) {
    const int64_t own = first + rank.index;
    const bool idle = own >= v;
    rank.scalars.micro_batch = own;
    if (!idle && !read) read_inputs(rank, job, program, own);
    if (rank.core->failed()) throw Stopped{};
    if (!idle) send_inputs(rank);
    issue_program(rank, program, idle, static_cast<int>(std::min(n, v - first)));
    read = !rank.host && own + n < v;
    if (read) read_inputs(rank, job, program, own + n);
    finish_program(rank, program);
  }
  rank.scalars.micro_batch = v - 1;  // the last that an update comes after: every error names one
  if (job.update) {
    raise_stop_flag(rank);
    run_program(rank, Program::update, false, static_cast<int>(n));
  }
  rank.step_ns = rank.core->now_ns() - begin;
  if (job.kind == Job::Kind::window) share_times(rank);
}

}  // namespace zeroplan
