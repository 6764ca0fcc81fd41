// The loop over steps, and what runs around each of them.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "kernels/failures.h"
#include "runtime/exec/core.h"

namespace zeroplan {
namespace {

void set_progress(PreparedStep& s, uint32_t value) { std::atomic_ref(*s.lane->progress).store(value, std::memory_order_release); }

// Before and after a step, in the stream's order, on a thread of the host.
void begin(PreparedStep& s) {
  set_progress(s, progress_of(s.program, s.index));
  const ExecutorOptions& options = s.rank->core->options;
  s.lane->begin_ns = s.rank->core->now_ns();
  if (options.before_step) options.before_step(s.rank->index, s.program, s.index, *s.step);
}

void keep_event(Lane& lane, const TraceEvent& event, int64_t steps) {
  const bool wanted = steps == 0 || event.train_step <= steps;
  if (wanted && lane.traced < lane.trace.size())
    lane.trace[lane.traced++] = event;
  else
    lane.trace_end = std::min(lane.trace_end, trace_place(event.train_step, event.program));
}

void finish(PreparedStep& s) {
  Rank& rank = *s.rank;
  Lane& lane = *s.lane;
  const ExecutorOptions& options = rank.core->options;
  if (options.after_step) options.after_step(rank.index, s.program, s.index, *s.step);
  // Of two streams at work the check could not tell whose write it found: theirs are checked at the program's end.
  if (options.check_memory && rank.host && s.step->stream == StreamKind::compute) check_canaries(rank);
  const int64_t now = rank.core->now_ns();
  if (s.step->stream == StreamKind::compute) lane.compute_ns += now - lane.begin_ns;
  if (options.trace)
    keep_event(lane, {rank.index, s.program, s.index, lane.begin_ns, now, rank.scalars.step, rank.scalars.micro_batch},
               options.trace_steps);
  set_progress(s, kIdle);
}

// Runs work(s); what it throws is reported at once, so that the other ranks stop, and then stays with the stream.
template <typename Fn>
void guarded(PreparedStep& s, Fn&& work) {
  try {
    work(s);
  } catch (...) {
    s.rank->core->fail(place_of(s), std::current_exception());
    throw;
  }
}

void begin_step(void* argument) { guarded(*static_cast<PreparedStep*>(argument), begin); }
void finish_step(void* argument) { guarded(*static_cast<PreparedStep*>(argument), finish); }

// The same in a call of the host that a device makes, which must not throw: the failure is with the core.
template <Stream::Task kTask>
void quietly(void* argument) noexcept {
  try {
    kTask(argument);
  } catch (...) {
  }
}

void note_begin(PreparedStep& s) {
  s.rank->host ? s.lane->stream->launch(begin_step, &s) : s.lane->stream->host_call(quietly<begin_step>, &s);
}
void note_finish(PreparedStep& s) {
  s.rank->host ? s.lane->stream->launch(finish_step, &s) : s.lane->stream->host_call(quietly<finish_step>, &s);
}

void run_kernel(void* argument) {
  guarded(*static_cast<PreparedStep*>(argument), [](PreparedStep& s) {
    const bool host = s.rank->host;
    if (host) begin(s);
    s.kernel(s.args);
    if (s.rank->core->options.check_nan) check_outputs(s);
    if (host) finish(s);
  });
}

void issue_kernel(PreparedStep& s) {
  Stream& stream = *s.lane->stream;
  const bool noted = !s.rank->host && observed(*s.rank);
  if (noted) note_begin(s);
  stream.launch(run_kernel, &s);
  if (noted) note_finish(s);
}

// On the issuing thread, which may use the streams.
void run_host(PreparedStep& step) {
  step.lane->stream->synchronize();
  guarded(step, [](PreparedStep& s) {
    begin(s);
    run_host_step(s);
    finish(s);
  });
}

// A freed slot holds nothing: the step is a place in the order.
void issue_free(PreparedStep& s) {
  if (!s.rank->host && !observed(*s.rank)) return;
  note_begin(s);
  note_finish(s);
}

void issue_collective(PreparedStep& s, int contributors) {
  Stream& stream = *s.lane->stream;
  const bool noted = s.rank->host || observed(*s.rank);
  noted ? note_begin(s) : stream.mark(s.lane->progress, progress_of(s.program, s.index));
  switch (s.step->kind) {
    case StepKind::all_gather: s.lane->comm->all_gather(s.from, s.to, s.count, stream); break;
    case StepKind::reduce_scatter: s.lane->comm->reduce_scatter(s.from, s.to, s.count, s.dtype, contributors, s.fold, stream); break;
    default: s.lane->comm->all_reduce(s.to, s.count, s.dtype, stream); break;
  }
  noted ? note_finish(s) : stream.mark(s.lane->progress, kIdle);
}

void wait_for(PreparedStep& s) {
  const bool blocks = s.step->stream == StreamKind::compute;
  const int64_t before = blocks && !s.waits.empty() ? s.rank->core->now_ns() : 0;
  for (Event* event : s.waits) s.lane->stream->wait(*event);
  if (before != 0) s.rank->exposed_ns += s.rank->core->now_ns() - before;
}

void issue(PreparedStep& s, bool idle, int contributors) {
  s.rank->issuing = &s;
  wait_for(s);
  switch (s.step->kind) {
    case StepKind::kernel:
    case StepKind::copy:
      if (!idle) issue_kernel(s);
      break;
    case StepKind::host: run_host(s); break;
    case StepKind::free: issue_free(s); break;
    default: issue_collective(s, contributors); break;
  }
  if (s.records != nullptr) s.lane->stream->record(*s.records);
}

// The kernels from `first` to the segment's end at once.
void issue_segment(PreparedStep& first) {
  Segment& segment = *first.segment;
  Stream& stream = *first.lane->stream;
  auto* const steps = &first - segment.first;
  first.rank->issuing = &first;
  wait_for(first);
  if (!segment.recording) {
    stream.begin_recording();
    for (int i = segment.first; i <= segment.last; ++i) {
      first.rank->issuing = &steps[i];
      stream.launch(run_kernel, &steps[i]);
    }
    segment.recording = stream.end_recording();
    if (!segment.recording) stream.synchronize();  // it failed: its error
  }
  stream.replay(*segment.recording);
  if (Event* records = steps[segment.last].records) stream.record(*records);
}

// All steps in the order of the plan.
void issue_all(Rank& rank, Program program, bool idle, int contributors) {
  auto& steps = rank.programs[static_cast<int>(program)];
  const bool whole = rank.warm[static_cast<int>(program)] && !idle;
  for (size_t i = 0; i < steps.size() && !rank.core->failed();) {
    if (whole && steps[i].segment != nullptr) {
      issue_segment(steps[i]);
      i = static_cast<size_t>(steps[i].segment->last) + 1;
    } else {
      issue(steps[i++], idle, contributors);
    }
  }
  if (!idle) rank.warm[static_cast<int>(program)] = true;
}

// An error that reached the issuing thread belongs to the step that a failed stream had begun.
void fail_here(Rank& rank, std::exception_ptr error) {
  const PreparedStep* at = rank.issuing;
  for (Lane& lane : rank.lanes)
    if (const PreparedStep* active = rank.active(lane)) at = active;
  rank.core->fail(at == nullptr ? ErrorContext{.rank = rank.index} : place_of(*at), error);
}

void synchronize(Rank& rank) {
  const int64_t before = rank.core->now_ns();
  for (Lane& lane : rank.lanes) {
    try {
      lane.stream->synchronize();
    } catch (...) {
      fail_here(rank, std::current_exception());
    }
  }
  rank.exposed_ns += rank.core->now_ns() - before;
}

// What a kernel found in its operands, on a device that cannot throw.
void report_fault(Rank& rank, Program program) {
  const PreparedStep* at = nullptr;
  try {
    const KernelFault fault = rank.context->take_fault();
    if (fault.kind == KernelFault::none) return;
    at = &rank.programs[static_cast<int>(program)][fault.place];
    throw_fault(fault);
  } catch (...) {
    rank.core->fail(at == nullptr ? ErrorContext{.rank = rank.index} : place_of(*at), std::current_exception());
  }
}

}  // namespace

void issue_program(Rank& rank, Program program, bool idle, int contributors) {
  try {
    if (rank.core->options.check_memory) fill_transient(rank, program);
    rank.upload_scalars();
    issue_all(rank, program, idle, contributors);
  } catch (...) {
    fail_here(rank, std::current_exception());
  }
}

void finish_program(Rank& rank, Program program) {
  Core& core = *rank.core;
  synchronize(rank);
  if (rank.context && !core.failed()) report_fault(rank, program);
  if (core.failed()) throw Stopped{};
  if (!core.options.check_memory) return;
  check_canaries(rank);
  rank.high_water = std::max(rank.high_water, touched_transient(rank));
}

void run_program(Rank& rank, Program program, bool idle, int contributors) {
  issue_program(rank, program, idle, contributors);
  finish_program(rank, program);
}

}  // namespace zeroplan
