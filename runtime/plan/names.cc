#include <fmt/format.h>

#include "graph/ops/op_def.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"

namespace zeroplan {

std::string_view arena_name(Arena arena) {
  switch (arena) {
    case Arena::state: return "state";
    case Arena::transient: return "transient";
    case Arena::staging: return "staging";
  }
  return "?";
}

std::string_view stream_name(StreamKind stream) {
  switch (stream) {
    case StreamKind::compute: return "compute";
    case StreamKind::gather: return "gather";
    case StreamKind::reduce: return "reduce";
  }
  return "?";
}

std::string_view tensor_kind_name(TensorKind kind) {
  switch (kind) {
    case TensorKind::weights: return "weights";
    case TensorKind::gradients: return "gradients";
    case TensorKind::moments: return "optimizer moments";
    case TensorKind::metrics: return "metrics";
    case TensorKind::constant: return "constants";
    case TensorKind::slot: return "slots";
    case TensorKind::reduce_buffer: return "reduce buffers";
    case TensorKind::activation: return "activations";
    case TensorKind::workspace: return "workspace";
    case TensorKind::input: return "inputs";
    case TensorKind::output: return "outputs";
    case TensorKind::master: return "master weights";
  }
  return "";
}

std::string_view step_kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::kernel: return "kernel";
    case StepKind::all_gather: return "all_gather";
    case StepKind::reduce_scatter: return "reduce_scatter";
    case StepKind::all_reduce: return "all_reduce";
    case StepKind::free: return "free";
    case StepKind::copy: return "copy";
    case StepKind::host: return "host";
  }
  return "?";
}

std::string describe_operand(const Plan& plan, const Operand& operand) {
  if (operand.tensor == kNone) return "-";
  const PlanTensor& t = plan.tensors[operand.tensor];
  const auto [begin, end] = tensor_range(plan, t, t.per_rank ? 0 : -1);
  std::string text = fmt::format("{}@{}:{}+{}{}", t.name, arena_name(t.arena), begin, end - begin, t.per_rank ? "·rank" : "");
  if (operand.value != kNone && plan.values[operand.value].name != t.name) return plan.values[operand.value].name + "=" + text;
  return text;
}

std::string describe_step(const Plan& plan, const Step& step) {
  const std::string name(step.kind == StepKind::kernel || step.kind == StepKind::host ? op_name(step.op) : step_kind_name(step.kind));
  return step.unit == kNone ? name : fmt::format("{} {}", name, plan.units[step.unit].name);
}

}  // namespace zeroplan
