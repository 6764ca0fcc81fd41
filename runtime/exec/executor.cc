#include "runtime/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "runtime/exec/core.h"
#include "runtime/exec/read_state.h"
#include "runtime/plan/report.h"

namespace zeroplan {
namespace {

double milliseconds(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

void take_times(Core& core, StepReport& report) {
  int64_t busiest = -1;
  for (int r = 0; r < core.plan().header.ranks; ++r) {
    const RankTimes times = times_of(core, r);
    if (core.options.check_memory) {
      const auto& bytes = core.plan().arena_bytes;
      report.arena_high_water = std::max(report.arena_high_water, bytes[0] + times.high_water + bytes[static_cast<int>(Arena::staging)]);
    }
    if (times.compute_ns + times.data_ns <= busiest) continue;
    busiest = times.compute_ns + times.data_ns;
    report.slowest_rank = r;
    report.step_ms = milliseconds(times.step_ns);
    report.compute_ms = milliseconds(times.compute_ns);
    report.exposed_comm_ms = milliseconds(times.exposed_ns);
    report.data_ms = milliseconds(times.data_ns);
  }
}

// Those before the place `end`, in order of time.
std::vector<TraceEvent> in_time_before(int64_t end, std::vector<TraceEvent> events) {
  std::erase_if(events, [end](const TraceEvent& e) { return trace_place(e.train_step, e.program) >= end; });
  std::sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) { return a.begin_ns < b.begin_ns; });
  return events;
}

using ReportFields = std::array<double, kReportFields>;

// The same on every rank.
ReportFields read_report(Core& core, int32_t tensor) {
  ReportFields fields;
  Rank& rank = core.local_rank(0);
  rank.read(rank.address(core.plan().tensors[tensor]), fields.data(), sizeof fields);
  return fields;
}

bool sends_float16(const Plan& plan) {
  return std::any_of(plan.units.begin(), plan.units.end(), [](const PlanUnit& u) { return u.reduce_dtype == DType::f16; });
}

void take_report(Core& core, const ReportFields& fields, StepReport& report) {
  report.loss = fields[kReportLoss];
  report.weight = fields[kReportWeight] / (fields[kReportScale] > 0 ? fields[kReportScale] : 1);
  report.grad_norm = fields[kReportNorm];
  report.clipped_norm = fields[kReportClippedNorm];
  report.clip_factor = fields[kReportFactor];
  report.stopped = fields[kReportStop] > 0;
  report.skipped = fields[kReportSkip] != 0;
  if (core.plan().roles.loss_scale != kNone) report.loss_scale = fields[kReportScale];
  if (fields[kReportOverflow] != 0) report.overflow = first_overflow(core);
  if (report.stopped || fields[kReportFinite] != 0) return;
  std::string what = fmt::format("loss {} or gradient norm {} is not finite; nothing was updated. ", report.loss, report.grad_norm);
  if (std::isfinite(report.loss) && sends_float16(core.plan()))
    what += "Gradients are sent as float16, which ends at 65504, and are sums over samples: try --reduce-dtype bf16 or fp32. Else look";
  else
    what += "Look";
  throw Error(
      what + " for NaN in the data, lower the learning rate, clip, or run with --check-nan to find the input or op that it came from",
      {.step = report.step});
}

}  // namespace

std::vector<TraceEvent> join_traces(const std::vector<std::vector<TraceEvent>>& traces) {
  std::vector<TraceEvent> all;
  int64_t end = INT64_MAX;
  for (const std::vector<TraceEvent>& trace : traces) {
    int64_t last = -1;
    for (const TraceEvent& e : trace) last = std::max(last, trace_place(e.train_step, e.program));
    end = std::min(end, last + 1);
    all.insert(all.end(), trace.begin(), trace.end());
  }
  return in_time_before(end, std::move(all));
}

struct Executor::Impl {
  Impl(std::vector<std::shared_ptr<const Plan>> plans, const WeightReader& weights, ExecutorOptions options)
      : core(std::make_shared<Core>(std::move(plans), weights, std::move(options))) {
    for (int i = 0; i < core->local_ranks(); ++i) threads.emplace_back([c = core, i] { c->serve(c->local_rank(i)); });
  }
  // A rank that is stuck in foreign code keeps the core alive and ends by itself when it comes back.
  ~Impl() {
    const bool ended = core->wait_for_exit(core->failed() ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(30000));
    for (std::thread& t : threads) ended ? t.join() : t.detach();
  }

  StepReport run_window(const DataSource& data, int64_t first_sample, const int64_t* order, const RunScalars& scalars, bool update) {
    const int64_t samples = window_samples(data, first_sample);
    Job job{.kind = Job::Kind::window,
            .data = &data,
            .first_sample = first_sample,
            .order = order,
            .samples = samples,
            .micro_batches = ceil_div(samples, samples_per_micro_batch(core->plan())),
            .update = update,
            .clear_gradients = accumulated,
            .scalars = scalars};
    job.scalars.skipped = skipped;
    core->run(job);
    accumulated = gradients_there = !update;
    last = scalars;
    StepReport report;
    report.step = scalars.step;
    report.samples = samples;
    take_times(*core, report);
    return report;
  }

  int64_t window_samples(const DataSource& data, int64_t first) const {
    const Plan& plan = core->plan();
    const int64_t left = data.samples() - first;
    if (left >= plan.header.batch) return plan.header.batch;
    if (left < 1 || !takes_part_batches(plan))
      throw Error(fmt::format("samples {} to {} of {} were asked for", first, first + plan.header.batch, data.samples()));
    return left;
  }

  std::shared_ptr<Core> core;  // shared with the ranks' threads: one that is stuck may outlive the executor
  std::vector<std::thread> threads;
  RunScalars last;               // of the last window: an evaluation comes after it
  int64_t skipped = 0;           // steps that updated nothing
  bool accumulated = false;      // the next window has to clear what accumulate() left
  bool gradients_there = false;  // nothing has run since accumulate()
};

Executor::Executor(std::vector<std::shared_ptr<const Plan>> plans, const WeightReader& weights, ExecutorOptions options) {
  if (plans.empty() || plans[0] == nullptr) throw Error("an executor needs a plan");
  impl_ = std::make_unique<Impl>(std::move(plans), weights, std::move(options));
  impl_->core->run({.kind = Job::Kind::load});
}

Executor::~Executor() = default;

const Plan& Executor::plan() const { return impl_->core->plan(); }

StepReport Executor::train_step(const DataSource& data, int64_t first_sample, const int64_t* order, const RunScalars& scalars) {
  if (plan().roles.report == kNone) throw Error("the plan has no update program: it cannot train");
  StepReport report = impl_->run_window(data, first_sample, order, scalars, true);
  const ReportFields fields = read_report(*impl_->core, plan().roles.report);
  if (fields[kReportStop] > 0) impl_->core->stop.store(false);
  take_report(*impl_->core, fields, report);
  if (report.skipped) ++impl_->skipped;
  return report;
}

StepReport Executor::accumulate(const DataSource& data, int64_t first_sample, const int64_t* order, const RunScalars& scalars) {
  StepReport report = impl_->run_window(data, first_sample, order, scalars, false);
  const WindowLoss loss = read_metrics(*impl_->core);
  const bool divided = divides_by_weight(plan(), Program::update);
  report.weight = divided ? loss.weight : 1;  // as the report of an update has it
  report.loss = divided && loss.weight != 0 ? loss.sum / loss.weight : loss.sum;
  return report;
}

EvalReport Executor::evaluate(const DataSource& data) {
  const Plan& p = plan();
  if (find_program(p, Program::eval_step) == nullptr) throw Error("the plan has no evaluation program; compile it with evaluation");
  const int64_t size = samples_per_micro_batch(p), batch = p.header.batch;
  if (data.samples() == INT64_MAX) throw Error("evaluation over endless data; give a data set of finite size");
  const int64_t all = takes_part_batches(p) ? data.samples() : data.samples() / size * size;
  double sum = 0, weight = 0;
  impl_->gradients_there = false;
  for (int64_t done = 0; done < all; done += batch) {
    const int64_t now = std::min(batch, all - done);
    impl_->core->run({.kind = Job::Kind::eval_window,
                      .data = &data,
                      .first_sample = done,
                      .samples = now,
                      .micro_batches = ceil_div(now, size),
                      .scalars = {.step = impl_->last.step, .seed = impl_->last.seed}});
    impl_->core->run({.kind = Job::Kind::program, .program = Program::eval_end});
    const ReportFields fields = read_report(*impl_->core, p.roles.eval_report);
    sum += fields[kReportSum];
    weight += fields[kReportSumWeight];
  }
  const bool divided = divides_by_weight(p, Program::eval_end);
  return {divided ? sum / weight : sum, weight, all};  // weight 0: NaN, as no sample counted
}

void Executor::predict(const DataSource& data, int64_t first_sample, const int64_t* order,
                       const std::function<void(int64_t, const PlanOutput&, const HostTensor&)>& take) {
  const Plan& p = plan();
  if (p.outputs.empty()) throw Error("the plan trains; a plan of outputs predicts");
  const int64_t v = p.header.micro_batches, n = p.header.ranks, count = p.header.batch / v;
  for (int64_t done = 0; done < v; done += n) {
    const int64_t now = std::min(n, v - done);
    impl_->core->run({.kind = Job::Kind::eval_window,
                      .data = &data,
                      .first_sample = first_sample + done * count,
                      .order = order,
                      .samples = now * count,
                      .micro_batches = now,
                      .scalars = {}});
    for (int64_t i = 0; i < now; ++i)
      for (const PlanOutput& output : p.outputs) take(done + i, output, read_tensor(*impl_->core, static_cast<int>(i), output.tensor));
  }
}

HostTensor Executor::gradient(int parameter) {
  impl_->core->throw_if_failed();
  if (!impl_->gradients_there && !carried_tensors(plan()).empty())
    throw Error("the gradients are gone: other steps use their memory; ask for them after accumulate(), before anything else is run");
  return read_gradient(*impl_->core, parameter);
}

HostTensor Executor::weights(int parameter) {
  const PlanParameter& p = find_parameter(plan(), parameter);
  HostTensor values(wide_dtype(plan().units[p.unit].dtype), p.parameter.shape);
  export_parameters([&](int index, const void* data) {
    if (index == parameter) std::memcpy(values.mutable_data(), data, static_cast<size_t>(values.bytes()));
  });
  return values;
}

void Executor::export_parameters(const std::function<void(int, const void*)>& take) {
  if (find_program(plan(), Program::save) == nullptr) throw Error("the plan has no save program; compile it again");
  std::exception_ptr refused;  // no failure of a rank
  const std::function<void(int, const void*)> guarded = [&](int parameter, const void* data) {
    try {
      if (!refused) take(parameter, data);
    } catch (...) {
      refused = std::current_exception();
    }
  };
  impl_->gradients_there = false;
  impl_->core->take_parameter = &guarded;
  impl_->core->run({.kind = Job::Kind::program, .program = Program::save});
  impl_->core->take_parameter = nullptr;
  if (refused) std::rethrow_exception(refused);
}

void Executor::set_decay(const std::vector<double>& multipliers) {
  const Plan& p = plan();
  if (multipliers.size() != p.parameters.size())
    throw Error(fmt::format("{} decay multipliers for {} parameters", multipliers.size(), p.parameters.size()));
  for (size_t u = 0; u < p.units.size(); ++u)
    for (size_t i = 0; i < p.units[u].parameters.size(); ++i)
      impl_->core->extents[u][i].decay = multipliers[p.units[u].parameters[i].parameter];
  for (int i = 0; i < impl_->core->local_ranks(); ++i) impl_->core->local_rank(i).upload_extents();
}

void Executor::request_stop() { impl_->core->stop.store(true); }

std::vector<TraceEvent> Executor::take_trace() {
  std::vector<TraceEvent> events;
  int64_t end = INT64_MAX;
  for (int i = 0; i < impl_->core->local_ranks(); ++i) {
    for (Lane& lane : impl_->core->local_rank(i).lanes) {
      events.insert(events.end(), lane.trace.begin(), lane.trace.begin() + static_cast<int64_t>(lane.traced));
      end = std::min(end, lane.trace_end);
      lane.traced = 0;
      lane.trace_end = INT64_MAX;
    }
  }
  return in_time_before(end, std::move(events));
}

int64_t Executor::now_ns() const { return impl_->core->now_ns(); }

const std::string& Executor::collectives() const { return impl_->core->backend().collectives; }

const std::string& Executor::products() const { return impl_->core->backend().products; }

int64_t Executor::arena_bytes() const {
  int64_t bytes = 0;
  for (int64_t b : plan().arena_bytes) bytes += b;
  return bytes;
}

}  // namespace zeroplan
