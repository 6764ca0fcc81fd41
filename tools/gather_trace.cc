#include "tools/gather_trace.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace zeroplan {
namespace {

struct RankTrace {
  int64_t clock_start = 0;  // by the rank's steady clock: where its events count from
  std::vector<TraceEvent> events;
};

int64_t clock_start(const Executor& executor) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - executor.now_ns();
}

std::string packed(const RankTrace& trace) {
  const size_t bytes = trace.events.size() * sizeof(TraceEvent);
  std::string text(sizeof(int64_t) + bytes, '\0');
  std::memcpy(text.data(), &trace.clock_start, sizeof(int64_t));
  if (bytes > 0) std::memcpy(text.data() + sizeof(int64_t), trace.events.data(), bytes);
  return text;
}

RankTrace unpacked(const std::string& text) {
  RankTrace trace;
  trace.events.resize((text.size() - sizeof(int64_t)) / sizeof(TraceEvent));
  std::memcpy(&trace.clock_start, text.data(), sizeof(int64_t));
  if (!trace.events.empty()) std::memcpy(trace.events.data(), text.data() + sizeof(int64_t), trace.events.size() * sizeof(TraceEvent));
  return trace;
}

}  // namespace

std::vector<TraceEvent> gather_trace(Executor& executor, MpiJob* job) {
  std::vector<TraceEvent> events = executor.take_trace();
  if (!job) return events;
  const std::vector<int64_t> offsets = job->clock_offsets();
  const std::vector<std::string> packs = job->gather(packed({clock_start(executor), std::move(events)}));
  std::vector<std::vector<TraceEvent>> by_rank;
  int64_t first_start = 0;
  for (size_t r = 0; r < packs.size(); ++r) {
    RankTrace trace = unpacked(packs[r]);
    if (r == 0) first_start = trace.clock_start;
    const int64_t shift = trace.clock_start - offsets[r] - first_start;
    for (TraceEvent& event : trace.events) {
      event.begin_ns += shift;
      event.end_ns += shift;
    }
    by_rank.push_back(std::move(trace.events));
  }
  return join_traces(by_rank);
}

}  // namespace zeroplan
