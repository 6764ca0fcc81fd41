#include "runtime/plan/verifier.h"

#include <unordered_map>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "runtime/plan/memory.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {

void VerifyContext::prepare() {
  ranges.clear();
  for (const PlanTensor& t : plan.tensors) {
    const auto [begin, end] = tensor_range(plan, t);
    ranges.push_back({begin, end});
  }
  source_of.assign(plan.values.size(), kNone);
  for (size_t i = 0; i < plan.source.size(); ++i)
    for (int32_t v : plan.source[i].outputs)
      if (v != kNone) source_of[v] = static_cast<int32_t>(i);
  parameter_of.assign(plan.values.size(), kNone);
  for (size_t v = 0; v < plan.values.size(); ++v)
    if (source_of[v] == kNone) parameter_of[v] = plan.values[v].parameter;
  carried.assign(plan.tensors.size(), false);
  for (int32_t t : carried_tensors(plan)) carried[t] = true;
}

StepOrder::StepOrder(const PlanProgram& program) {
  int length[kStreams] = {};
  std::array<int, kStreams> last[kStreams];
  for (auto& clock : last) clock.fill(-1);
  for (const Step& step : program.steps) {
    const int s = static_cast<int>(step.stream);
    std::array<int, kStreams> clock = last[s];
    for (int32_t wait : step.waits) {
      for (int k = 0; k < kStreams; ++k) clock[k] = std::max(clock[k], clock_[wait][k]);
      clock[stream_[wait]] = std::max(clock[stream_[wait]], position_[wait]);
    }
    stream_.push_back(s);
    position_.push_back(length[s]);
    clock_.push_back(clock);
    clock[s] = length[s]++;
    last[s] = clock;
  }
}

bool is_copy(const Step& step) { return step.kind == StepKind::copy || (step.kind == StepKind::kernel && step.op == OpKind::copy); }

CopyNames::CopyNames(const VerifyContext& context, const PlanProgram& program) {
  original_.resize(context.plan.values.size());
  for (size_t i = 0; i < original_.size(); ++i) original_[i] = static_cast<int32_t>(i);
  for (const Step& step : program.steps) {
    if (!is_copy(step) || step.inputs.size() != 1 || step.outputs.size() != 1) continue;
    const int32_t from = step.inputs[0].value, to = step.outputs[0].value;
    if (from != kNone && to != kNone && context.source_of[to] == kNone) original_[to] = original_[from];
  }
}

int32_t CopyNames::original(int32_t value) const { return value == kNone ? kNone : original_[value]; }

namespace {

// A hostile file may hold offsets and strides whose sums leave 64 bits.
bool prepare_checked(VerifyContext& context) {
  try {
    context.prepare();
    return true;
  } catch (const Error& e) {
    context.fail("format", fmt::format("a tensor's extent is out of range: {}", e.message()));
    return false;
  }
}

// The value of an input bears its name; where the plan does not state it and none does, the first reader says.
std::vector<int32_t> input_values(const VerifyContext& context) {
  std::unordered_map<std::string, int32_t> leaves;
  const Plan& plan = context.plan;
  for (size_t v = 0; v < plan.values.size(); ++v)
    if (context.source_of[v] == kNone && context.parameter_of[v] == kNone) leaves.emplace(plan.values[v].name, static_cast<int32_t>(v));
  std::vector<int32_t> values(plan.tensors.size(), kNone);
  for (const PlanInput& input : plan.inputs) {
    const auto named = leaves.find(input.name);
    values[input.tensor] = input.value != kNone ? input.value : named == leaves.end() ? kNone : named->second;
  }
  return values;
}

void verify_program(VerifyContext& context, const PlanProgram& program, std::vector<int32_t>& input_values) {
  verify_flow(context, program, input_values);
  verify_state_writers(context, program);
  verify_units(context, program);
  verify_reductions(context, program);
  verify_collectives(context, program);
  verify_source(context, program);
  verify_update(context, program);
  verify_statistics(context, program);
  verify_once_per_unit(context, program);
}

}  // namespace

Verification verify_plan(const Plan& plan) {
  Verification result;
  VerifyContext context(plan, result);
  if (!verify_indices(context) || !prepare_checked(context)) return result;
  verify_format(context);
  for (const PlanProgram& program : plan.programs) {
    verify_steps(context, program);
    verify_waits(context, program);
  }
  if (!context.clean()) return result;  // the rules below rely on these
  verify_borders(context);
  std::vector<int32_t> inputs = input_values(context);
  for (const PlanProgram& program : plan.programs) verify_program(context, program, inputs);
  verify_memory(context);
  if (plan.header.digest != plan_digest(plan))
    context.fail("digest", fmt::format("the header states the digest '{}', the plan's own is '{}'", plan.header.digest, plan_digest(plan)));
  return result;
}

void require_verified(const Plan& plan) {
  const Verification result = verify_plan(plan);
  if (result.ok()) return;
  std::vector<std::string> lines;
  for (const Violation& v : result.violations) {
    const std::string place = v.program.empty() ? ""
                              : v.step < 0      ? fmt::format(" in {}", v.program)
                                                : fmt::format(" in {} step {}", v.program, v.step);
    lines.push_back(fmt::format("[{}]{}: {}", v.rule, place, v.message));
  }
  throw ErrorList("the plan is not safe to run; compile the model again", std::move(lines));
}

}  // namespace zeroplan
