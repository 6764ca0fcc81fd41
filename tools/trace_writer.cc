#include "tools/trace_writer.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "graph/ops/op_def.h"
#include "runtime/plan/dump.h"
#include "tools/console.h"

namespace zeroplan {
namespace {

nlohmann::json name_row(const char* what, int rank, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

nlohmann::json event_row(const Plan& plan, const TraceEvent& event) {
  const Step& step = find_program(plan, event.program)->steps[event.step_index];
  std::string name(op_name(step.op));
  if (step.unit != kNone) name += " " + plan.units[step.unit].name;
  nlohmann::json args = {{"plan_op", fmt::format("{}[{}]", program_name(event.program), event.step_index)},
                         {"step", event.train_step},
                         {"micro_batch", event.micro_batch}};
  if (!step.origin.empty()) args["node"] = step.origin;
  if (!step.reason.empty()) args["reason"] = step.reason;
  return {{"ph", "X"},
          {"name", name},
          {"pid", event.rank},
          {"tid", static_cast<int>(step.stream)},
          {"ts", static_cast<double>(event.begin_ns) / 1000},
          {"dur", static_cast<double>(event.end_ns - event.begin_ns) / 1000},
          {"args", args}};
}

}  // namespace

void write_trace(const std::string& path, const Plan& plan, const std::vector<TraceEvent>& events, int64_t steps, int64_t wanted) {
  nlohmann::json rows = nlohmann::json::array();
  for (int rank = 0; rank < plan.header.ranks; ++rank) {
    rows.push_back(name_row("process_name", rank, 0, fmt::format("rank {}", rank)));
    for (int stream = 0; stream < kStreams; ++stream)
      rows.push_back(name_row("thread_name", rank, stream, std::string(stream_name(static_cast<StreamKind>(stream)))));
  }
  for (const TraceEvent& event : events) rows.push_back(event_row(plan, event));
  write_file(path, nlohmann::json{{"displayTimeUnit", "ms"}, {"traceEvents", rows}}.dump(-1, ' ', false,
                                                                                         nlohmann::json::error_handler_t::replace));
  int64_t last = 0;
  for (const TraceEvent& event : events) last = std::max(last, event.train_step);
  const char* why = last >= steps    ? ""
                    : last == wanted ? ", as --trace-steps says"
                                     : ": the next has no room, as a stream keeps 65,536 events; --trace-steps N keeps the first N";
  say("trace {}: steps 1 to {} of {}{}\n", path, last, steps, why);
}

}  // namespace zeroplan
