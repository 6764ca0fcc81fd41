#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/ops/op_def.h"
#include "runtime/exec/core.h"
#include "runtime/plan/dump.h"

namespace zeroplan {
namespace {

constexpr size_t kMostNames = 8;

// Parameters that the step's unit or its operands belong to, in order, each once.
std::vector<int> parameters_of(const Plan& plan, const Step& step) {
  std::vector<int> found;
  auto add = [&](int p) {
    if (p != kNone && std::find(found.begin(), found.end(), p) == found.end()) found.push_back(p);
  };
  if (step.unit != kNone)
    for (const UnitParameter& p : plan.units[step.unit].parameters) add(p.parameter);
  else
    for (const auto* operands : {&step.inputs, &step.outputs})
      for (const Operand& o : *operands)
        if (o.value != kNone) add(plan.values[o.value].parameter);
  return found;
}

std::string parameter_names(const Plan& plan, const std::vector<int>& parameters) {
  std::string text;
  for (size_t i = 0; i < parameters.size() && i < kMostNames; ++i)
    text += (i > 0 ? ", " : "") + plan.parameters[parameters[i]].parameter.name;
  if (parameters.size() > kMostNames) text += fmt::format(", and {} more", parameters.size() - kMostNames);
  return text.empty() ? "none" : text;
}

std::string unit_names(const Plan& plan, const Step& step, const std::vector<int>& parameters) {
  std::set<int> units;
  if (step.unit != kNone) units.insert(step.unit);
  for (int p : parameters)
    if (plan.parameters[p].unit != kNone) units.insert(plan.parameters[p].unit);
  std::string text;
  for (int u : units) text += (text.empty() ? "" : ", ") + plan.units[u].name;
  return text.empty() ? "none" : text;
}

}  // namespace

ErrorContext place_of(const Rank& rank, const Step& step, int index, Program program) {
  const Plan& plan = *rank.plan;
  const std::vector<int> parameters = parameters_of(plan, step);
  ErrorContext place;
  place.rank = rank.index;
  place.step = rank.scalars.step;
  place.micro_batch = rank.scalars.micro_batch;
  place.plan_op = index;
  place.program = std::string(program_name(program));
  const bool named_by_op = step.kind == StepKind::kernel || step.kind == StepKind::host;
  place.op = std::string(named_by_op ? op_name(step.op) : step_kind_name(step.kind));
  place.node = step.origin;
  place.unit = unit_names(plan, step, parameters);
  place.parameters = parameter_names(plan, parameters);
  return place;
}

ErrorContext place_of(const PreparedStep& s) { return place_of(*s.rank, *s.step, s.index, s.program); }

}  // namespace zeroplan
