#include "base/error.h"

#include <fmt/format.h>

namespace zeroplan {
namespace {

// "micro_step[17] all_gather"
std::string place_of(const ErrorContext& context) {
  std::string place = context.program;
  if (context.plan_op >= 0) place += fmt::format("{}[{}]", place.empty() ? "step" : "", context.plan_op);
  if (context.op.empty()) return place;
  return place.empty() ? "op " + context.op : place + " " + context.op;
}

std::string describe(const ErrorContext& context) {
  std::string text;
  auto add = [&](std::string_view label, std::string_view value) {
    if (value.empty()) return;
    fmt::format_to(std::back_inserter(text), "{}{}{}", text.empty() ? "" : ", ", label, value);
  };
  auto add_number = [&](std::string_view label, int64_t value) {
    if (value >= 0) add(label, std::to_string(value));
  };
  add_number("rank ", context.rank);
  add_number("step ", context.step);
  add_number("micro-batch ", context.micro_batch);
  add("", place_of(context));
  add("unit ", context.unit);
  add(context.parameters.find(',') == std::string::npos ? "parameter " : "parameters ", context.parameters);
  add("node ", context.node);
  return text;
}

std::string with_context(const std::string& message, const ErrorContext& context) {
  const std::string where = describe(context);
  std::string text = where.empty() ? message : fmt::format("{} ({})", message, where);
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");  // would end what()
  return text;
}

std::string join_problems(std::string text, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) text += "\n  " + problem;
  return text;
}

}  // namespace

Error::Error(std::string message, ErrorContext context)
    : std::runtime_error(with_context(message, context)), message_(std::move(message)), context_(std::move(context)) {}

Error Error::within(const ErrorContext& outer) const {
  ErrorContext merged = context_;
  auto fill = [](auto& field, const auto& from, bool unknown) {
    if (unknown) field = from;
  };
  fill(merged.rank, outer.rank, merged.rank < 0);
  fill(merged.step, outer.step, merged.step < 0);
  fill(merged.micro_batch, outer.micro_batch, merged.micro_batch < 0);
  fill(merged.plan_op, outer.plan_op, merged.plan_op < 0);
  fill(merged.program, outer.program, merged.program.empty());
  fill(merged.op, outer.op, merged.op.empty());
  fill(merged.node, outer.node, merged.node.empty());
  fill(merged.unit, outer.unit, merged.unit.empty());
  fill(merged.parameters, outer.parameters, merged.parameters.empty());
  return Error(message_, std::move(merged));
}

ErrorList::ErrorList(std::string heading, std::vector<std::string> problems)
    : Error(join_problems(std::move(heading), problems)), problems_(std::move(problems)) {}

void check(bool condition, const char* what, const char* file, int line) {
  if (!condition) throw std::logic_error(fmt::format("bug in zeroplan: {} ({}:{})", what, file, line));
}

}  // namespace zeroplan
