#include "runtime/exec/read_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "runtime/plan/report.h"

namespace zeroplan {
namespace {

// Elements of the parameter from a unit tensor that is a shard per rank, or whole on every rank.
HostTensor assemble(Core& core, int parameter, int32_t tensor) {
  const Plan& plan = core.plan();
  const PlanParameter& p = plan.parameters[parameter];
  const PlanUnit& unit = plan.units[p.unit];
  const PlanTensor& t = plan.tensors[tensor];
  const int64_t held = elements(t.shape), width = dtype_bytes(t.dtype);
  HostTensor out(t.dtype, p.parameter.shape);
  const int ranks = held == unit.padded_elements ? 1 : plan.header.ranks;
  for (int r = 0; r < ranks; ++r) {
    const int64_t first = r * held, low = std::max(first, p.offset), high = std::min(first + held, p.offset + out.count());
    if (low >= high) continue;
    Rank& rank = core.rank_at(r);
    rank.read(rank.address(t) + (low - first) * width, out.mutable_data() + (low - p.offset) * width, (high - low) * width);
  }
  return out;
}

}  // namespace

const PlanParameter& find_parameter(const Plan& plan, int parameter) {
  if (parameter < 0 || parameter >= static_cast<int>(plan.parameters.size()))
    throw Error(fmt::format("parameter {} of {} was asked for", parameter, plan.parameters.size()));
  return plan.parameters[parameter];
}

WindowLoss read_metrics(Core& core) {
  WindowLoss total;
  const Plan& plan = core.plan();
  const int64_t all = plan.header.micro_batches;
  std::vector<double> metrics(static_cast<size_t>(metrics_elements(all)));
  for (int64_t v = 0; v < all && plan.roles.metrics != kNone; ++v) {
    Rank& rank = core.rank_at(static_cast<int>(v % plan.header.ranks));
    rank.read(rank.address(plan.tensors[plan.roles.metrics]), metrics.data(), static_cast<int64_t>(metrics.size() * sizeof(double)));
    total.sum += metrics[v];
    total.weight += metrics[all + v];
  }
  return total;
}

bool divides_by_weight(const Plan& plan, Program program) {
  const PlanProgram* p = find_program(plan, program);
  if (p == nullptr) return false;
  return std::any_of(p->steps.begin(), p->steps.end(),
                     [](const Step& s) { return s.op == OpKind::fold_metrics && s.attributes.get_int(Attr::value, 0) == 1; });
}

HostTensor read_tensor(Core& core, int rank, int32_t tensor) {
  const PlanTensor& t = core.plan().tensors[tensor];
  HostTensor out(t.dtype, t.shape);
  Rank& owner = core.rank_at(rank);
  owner.read(owner.address(t), out.mutable_data(), out.bytes());
  return out;
}

std::string first_overflow(Core& core) {
  const Plan& plan = core.plan();
  Rank& rank = core.local_rank(0);
  const PlanTensor& tensor = plan.tensors[plan.roles.overflows];
  std::vector<int64_t> counts(static_cast<size_t>(overflow_elements(static_cast<int64_t>(plan.parameters.size()))));
  rank.read(rank.address(tensor), counts.data(), static_cast<int64_t>(counts.size() * sizeof(int64_t)));
  std::map<int32_t, int32_t> parameter_of;  // value of its gradient
  for (const auto& [parameter, value] : plan.gradients) parameter_of[value] = parameter;
  for (const Step& step : find_program(plan, Program::micro_step)->steps)
    for (const Operand& o : step.outputs)
      if (const auto found = parameter_of.find(o.value); found != parameter_of.end() && counts[1 + found->second] > 0)
        return plan.parameters[found->second].parameter.name;
  for (size_t i = 0; i < plan.parameters.size(); ++i)  // its gradient is a view of what a step makes
    if (counts[1 + i] > 0) return plan.parameters[i].parameter.name;
  return {};
}

HostTensor read_gradient(Core& core, int parameter) {
  const PlanParameter& p = find_parameter(core.plan(), parameter);
  const int32_t tensor = core.plan().units[p.unit].gradient_tensor;
  if (tensor == kNone) throw Error(fmt::format("parameter {} is frozen: it has no gradient", p.parameter.name));
  HostTensor gradient = assemble(core, parameter, tensor);
  if (core.plan().roles.loss_scale == kNone) return gradient;
  const double scale = read_tensor(core, 0, core.plan().roles.loss_scale).get(0);
  for (int64_t i = 0; i < gradient.count(); ++i) gradient.set(i, gradient.get(i) / scale);
  return gradient;
}

}  // namespace zeroplan
