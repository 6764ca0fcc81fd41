#include "tools/accounting.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace zeroplan {
namespace {

// What a ring moves per rank: (N - 1) / N of the whole buffer.
double moved_bytes(const Plan& plan, const PlanProgram& program) {
  const double share = static_cast<double>(plan.header.ranks - 1) / plan.header.ranks;
  double bytes = 0;
  for (const Step& step : program.steps) {
    if (step.kind != StepKind::all_gather && step.kind != StepKind::reduce_scatter) continue;
    const PlanUnit& unit = plan.units[step.unit];
    const bool scatter = step.kind == StepKind::reduce_scatter;
    const DType dtype = plan.tensors[scatter ? step.inputs[1].tensor : step.inputs[0].tensor].dtype;
    bytes += share * static_cast<double>(unit.padded_elements * dtype_bytes(dtype));
  }
  return bytes;
}

}  // namespace

std::pair<const char*, double> table_unit(double largest) {
  constexpr std::pair<const char*, double> kUnits[] = {{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}};
  for (const auto& unit : kUnits)
    if (largest >= unit.second) return unit;
  return {"B", 1};
}

std::string bytes_text(double bytes) {
  const auto [name, size] = table_unit(bytes);
  const double value = bytes / size;
  return fmt::format("{:.{}f} {}", value, size == 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2, name);
}

double published_bytes(int stage, double parameters, int ranks) {
  switch (stage) {
    case 0: return 16 * parameters;
    case 1: return 4 * parameters + 12 * parameters / ranks;
    case 2: return 2 * parameters + 14 * parameters / ranks;
    default: return 16 * parameters / ranks;
  }
}

double published_volume_factor(int stage) { return stage == 3 ? 3 : 2; }

PlanAccount account_of(const Plan& plan) {
  PlanAccount account;
  account.state_bytes = static_cast<double>(plan.arena_bytes[static_cast<int>(Arena::state)]);
  account.transient_bytes = static_cast<double>(plan.arena_bytes[static_cast<int>(Arena::transient)]);
  account.staging_bytes = static_cast<double>(plan.arena_bytes[static_cast<int>(Arena::staging)]);
  const double rounds = static_cast<double>(ceil_div(plan.header.micro_batches, plan.header.ranks));
  for (const PlanProgram& program : plan.programs) {
    if (program.program == Program::micro_step) account.moved_bytes_per_step += rounds * moved_bytes(plan, program);
    if (program.program == Program::update) account.moved_bytes_per_step += moved_bytes(plan, program);
  }
  return account;
}

}  // namespace zeroplan
