// The loop over steps, and what runs around each of them.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/core.h"

namespace zeroplan {
namespace {

void begin(PreparedStep& s) {
  s.lane->active.store(&s, std::memory_order_release);
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
  if (options.check_memory && s.step->stream == StreamKind::compute) check_canaries(rank);
  const int64_t now = rank.core->now_ns();
  if (s.step->stream == StreamKind::compute) lane.compute_ns += now - lane.begin_ns;
  if (options.trace)
    keep_event(lane, {rank.index, s.program, s.index, lane.begin_ns, now, rank.scalars.step, rank.scalars.micro_batch},
               options.trace_steps);
  lane.active.store(nullptr, std::memory_order_release);
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

void run_kernel(void* argument) {
  guarded(*static_cast<PreparedStep*>(argument), [](PreparedStep& s) {
    begin(s);
    s.kernel(s.args);
    if (s.rank->core->options.check_nan) check_outputs(s);
    finish(s);
  });
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
void run_free(void* argument) {
  guarded(*static_cast<PreparedStep*>(argument), [](PreparedStep& s) {
    begin(s);
    finish(s);
  });
}

void begin_collective(void* argument) { guarded(*static_cast<PreparedStep*>(argument), begin); }
void end_collective(void* argument) {
  guarded(*static_cast<PreparedStep*>(argument), [](PreparedStep& s) { finish(s); });
}

void issue_collective(PreparedStep& s, int contributors) {
  Stream& stream = *s.lane->stream;
  stream.launch(begin_collective, &s);
  switch (s.step->kind) {
    case StepKind::all_gather: s.lane->comm->all_gather(s.from, s.to, s.count, stream); break;
    case StepKind::reduce_scatter: s.lane->comm->reduce_scatter(s.from, s.to, s.count, s.dtype, contributors, s.fold, stream); break;
    default: s.lane->comm->all_reduce(s.to, s.count, s.dtype, stream); break;
  }
  stream.launch(end_collective, &s);
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
      if (!idle) s.lane->stream->launch(run_kernel, &s);
      break;
    case StepKind::host: run_host(s); break;
    case StepKind::free: s.lane->stream->launch(run_free, &s); break;
    default: issue_collective(s, contributors); break;
  }
  if (s.records != nullptr) s.lane->stream->record(*s.records);
}

// An error that reached the issuing thread belongs to the step that a failed stream had begun.
void fail_here(Rank& rank, std::exception_ptr error) {
  const PreparedStep* at = rank.issuing;
  for (Lane& lane : rank.lanes)
    if (const PreparedStep* active = lane.active.load(std::memory_order_acquire)) at = active;
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

}  // namespace

void run_program(Rank& rank, Program program, bool idle, int contributors) {
  Core& core = *rank.core;
  if (core.options.check_memory) fill_transient(rank, program);
  try {
    for (PreparedStep& s : rank.programs[static_cast<int>(program)]) {
      if (core.failed()) break;
      issue(s, idle, contributors);
    }
  } catch (...) {
    fail_here(rank, std::current_exception());
  }
  synchronize(rank);
  if (core.failed()) throw Stopped{};
  if (!core.options.check_memory) return;
  check_canaries(rank);
  rank.high_water = std::max(rank.high_water, touched_transient(rank));
}

}  // namespace zeroplan
