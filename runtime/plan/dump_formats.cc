#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/plan/dump.h"
#include "runtime/plan/plan_message.h"

namespace zeroplan {

std::string dump_json(const Plan& plan) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string out;
  const auto status = google::protobuf::util::MessageToJsonString(to_message(plan), &out, options);
  if (!status.ok()) throw Error(fmt::format("the plan cannot be written as JSON: {}", std::string(status.message())));
  return out;
}

namespace {

const char* stream_colour(StreamKind stream) {
  switch (stream) {
    case StreamKind::compute: return "lightblue";
    case StreamKind::gather: return "palegreen";
    case StreamKind::reduce: return "lightsalmon";
  }
  return "white";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

void put_program(std::string& out, const Plan& plan, const PlanProgram& program) {
  const std::string name(program_name(program.program));
  out += fmt::format("  subgraph cluster_{} {{\n    label={};\n", name, quoted(name));
  int previous[kStreams] = {-1, -1, -1};
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    out += fmt::format("    {}_{} [label={}, fillcolor={}];\n", name, i, quoted(fmt::format("{} {}", i, describe_step(plan, step))),
                       stream_colour(step.stream));
    int& last = previous[static_cast<int>(step.stream)];
    if (last >= 0) out += fmt::format("    {0}_{1} -> {0}_{2};\n", name, last, i);
    last = static_cast<int>(i);
    for (int32_t wait : step.waits) out += fmt::format("    {0}_{1} -> {0}_{2} [style=dashed, constraint=false];\n", name, wait, i);
  }
  out += "  }\n";
}

}  // namespace

std::string dump_dot(const Plan& plan) {
  std::string out = "digraph plan {\n  node [shape=box, style=filled];\n";
  for (const PlanProgram& program : plan.programs) put_program(out, plan, program);
  return out + "}\n";
}

std::vector<StepTime> predicted_times(const PlanProgram& program) {
  std::vector<StepTime> times;
  double stream_end[kStreams] = {};
  for (const Step& step : program.steps) {
    double& end = stream_end[static_cast<int>(step.stream)];
    double begin = end;
    for (int32_t wait : step.waits)
      if (wait >= 0 && wait < static_cast<int32_t>(times.size())) begin = std::max(begin, times[wait].end_us);
    end = begin + step.predicted_us;
    times.push_back({begin, end});
  }
  return times;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr int kTraceRanks = 16;  // all ranks do the same at the same predicted time

void name_tracks(Json& events, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", rank}, {"args", {{"name", fmt::format("rank {}", rank)}}}});
    for (int s = 0; s < kStreams; ++s)
      events.push_back(
          {{"name", "thread_name"}, {"ph", "M"}, {"pid", rank}, {"tid", s}, {"args", {{"name", stream_name(static_cast<StreamKind>(s))}}}});
  }
}

Json step_event(const Plan& plan, const PlanProgram& program, size_t index, const StepTime& time, double origin) {
  const Step& step = program.steps[index];
  Json args = {{"program", program_name(program.program)}, {"step", index}};
  if (step.unit != kNone) args["unit"] = plan.units[step.unit].name;
  if (!step.origin.empty()) args["origin"] = step.origin;
  if (!step.reason.empty()) args["reason"] = step.reason;
  return {{"name", describe_step(plan, step)},
          {"cat", program_name(program.program)},
          {"ph", "X"},
          {"ts", origin + time.begin_us},
          {"dur", time.end_us - time.begin_us},
          {"pid", 0},
          {"tid", static_cast<int>(step.stream)},
          {"args", std::move(args)}};
}

}  // namespace

std::string dump_trace(const Plan& plan) {
  Json events = Json::array();
  const int ranks = std::min(plan.header.ranks, kTraceRanks);
  name_tracks(events, ranks);
  double origin = 0;
  for (const PlanProgram& program : plan.programs) {
    const std::vector<StepTime> times = predicted_times(program);
    double end = origin;
    for (size_t i = 0; i < times.size(); ++i) {
      Json event = step_event(plan, program, i, times[i], origin);
      for (int rank = 0; rank < ranks; ++rank) {
        event["pid"] = rank;
        events.push_back(event);
      }
      end = std::max(end, origin + times[i].end_us);
    }
    origin = end;
  }
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace zeroplan
