// Ranks must run one plan. Where they do not, the first entry that differs is named.
#include <fmt/format.h>

#include <cstring>

#include "base/type_name.h"
#include "runtime/exec/core.h"
#include "runtime/exec/exchange.h"
#include "runtime/plan/dump.h"

namespace zeroplan {
namespace {

std::string operands(const Plan& plan, const std::vector<Operand>& list) {
  std::string text;
  for (const Operand& o : list) text += (text.empty() ? "" : ", ") + describe_operand(plan, o);
  return text;
}

std::string waits(const Step& step) {
  std::string text;
  for (int32_t w : step.waits) text += fmt::format(" {}", w);
  return text;
}

// All that the executor acts on, as text.
std::string full_step(const Plan& plan, const Step& step) {
  std::string parameters;
  if (step.unit != kNone)
    for (const UnitParameter& p : plan.units[step.unit].parameters) parameters += " " + plan.parameters[p.parameter].parameter.name;
  return fmt::format("{} on {} stream, parameters{}, ({}) -> ({}), workspace {}, waits{}{}", describe_step(plan, step),
                     stream_name(step.stream), parameters.empty() ? " none" : parameters, operands(plan, step.inputs),
                     operands(plan, step.outputs), describe_operand(plan, step.workspace), waits(step), step.records ? ", records" : "");
}

std::string header_entries(const PlanHeader& h) {
  return fmt::format(
      "ranks {}, batch {}, micro-batches {}, stage {}, device {}, threads {}, precision {}, optimizer {}, momentum {}, prefetch {}, reduce "
      "{}, model {}",
      h.ranks, h.batch, h.micro_batches, h.stage, device_kind_name(h.device), h.threads, type_name(h.precision), h.optimizer, h.momentum,
      h.prefetch, reduce_mode_name(h.reduce), h.model_digest);
}

std::string unit_entry(const Plan& plan, size_t i) {
  if (i >= plan.units.size()) return "absent";
  const PlanUnit& u = plan.units[i];
  return fmt::format("{}, {} parameters, shards of {} elements", u.name, u.parameters.size(), u.shard_elements);
}

std::string tensor_entry(const Plan& plan, size_t i) {
  if (i >= plan.tensors.size()) return "absent";
  const PlanTensor& t = plan.tensors[i];
  return fmt::format("{} {}{} at {}+{}", t.name, type_name(t.dtype), to_string(t.shape), arena_name(t.arena), t.offset);
}

std::string step_entry(const Plan& plan, Program program, size_t i) {
  const PlanProgram* p = find_program(plan, program);
  return p == nullptr || i >= p->steps.size() ? "absent" : full_step(plan, p->steps[i]);
}

size_t step_count(const Plan& plan, Program program) {
  const PlanProgram* p = find_program(plan, program);
  return p == nullptr ? 0 : p->steps.size();
}

std::string differ(const std::string& entry, const std::string& a, const std::string& b) {
  return a == b ? "" : fmt::format("{}: {} | {}", entry, a, b);
}

std::string program_difference(const Plan& a, const Plan& b, Program program) {
  const size_t steps = std::max(step_count(a, program), step_count(b, program));
  for (size_t i = 0; i < steps; ++i) {
    auto d = differ(fmt::format("{} step {}", program_name(program), i), step_entry(a, program, i), step_entry(b, program, i));
    if (!d.empty()) return d;
    const Step &x = find_program(a, program)->steps[i], &y = find_program(b, program)->steps[i];
    if (!(x.attributes == y.attributes)) return fmt::format("{} step {} ({}): attributes", program_name(program), i, describe_step(a, x));
  }
  return "";
}

}  // namespace

std::string plan_difference(const Plan& a, const Plan& b) {
  const std::string header = differ("header", header_entries(a.header), header_entries(b.header));
  std::string d;
  for (size_t i = 0; d.empty() && i < std::max(a.units.size(), b.units.size()); ++i)
    d = differ(fmt::format("unit {}", i), unit_entry(a, i), unit_entry(b, i));
  for (int p = 0; d.empty() && p < kPrograms; ++p) d = program_difference(a, b, static_cast<Program>(p));
  for (size_t i = 0; d.empty() && i < std::max(a.tensors.size(), b.tensors.size()); ++i)
    d = differ(fmt::format("tensor {}", i), tensor_entry(a, i), tensor_entry(b, i));
  if (!header.empty() && !d.empty()) return fmt::format("{}; then {}", header, d);
  if (!header.empty() || !d.empty()) return header + d;
  const std::string x = plan_digest(a), y = plan_digest(b);
  return x == y ? "" : fmt::format("digest {} | {} (steps, units and tensors are the same: an option, constant or name differs)", x, y);
}

void require_equal_plans(const std::vector<std::shared_ptr<const Plan>>& plans, const std::vector<RankBackend>& ranks) {
  if (plans.size() != ranks.size())
    throw Error(fmt::format("{} plans for {} ranks; give one for all or one per rank", plans.size(), ranks.size()));
  for (size_t i = 1; i < plans.size(); ++i) {
    if (plans[i] == plans[0] || plan_digest(*plans[i]) == plan_digest(*plans[0])) continue;
    throw Error(fmt::format("ranks {} and {} have different plans; the first entry that differs is {}; give all ranks the same file",
                            ranks[0].rank, ranks[i].rank, plan_difference(*plans[0], *plans[i])));
  }
}

namespace {

// `bytes`, of the same size on all ranks, as rank 0 has them.
std::string from_first(Rank& rank, std::string bytes) {
  const auto count = static_cast<int64_t>(bytes.size());
  const std::unique_ptr<DeviceMemory> memory = rank.device->alloc(count);
  exchange(rank, *memory, bytes.data(), count,
           [&](Communicator& comm, Stream& stream) { comm.broadcast(memory->data(), count, 0, stream); });
  return bytes;
}

// Whether any rank says so.
bool on_any(Rank& rank, bool here) {
  int64_t count = here ? 1 : 0;
  const std::unique_ptr<DeviceMemory> memory = rank.device->alloc(sizeof count);
  exchange(rank, *memory, &count, sizeof count,
           [&](Communicator& comm, Stream& stream) { comm.all_reduce(memory->data(), 1, DType::i64, stream); });
  return count > 0;
}

}  // namespace

// Where they differ, all ranks get the plan of rank 0 as well, to name the difference.
void compare_plans(Rank& rank, const std::string& own) {
  const bool differs = from_first(rank, own) != own;
  if (!on_any(rank, differs)) return;
  std::string plan = serialize_plan(*rank.plan);
  const auto own_count = static_cast<int64_t>(plan.size());
  std::string count(reinterpret_cast<const char*>(&own_count), sizeof own_count);
  count = from_first(rank, count);
  int64_t first_count = 0;
  std::memcpy(&first_count, count.data(), sizeof first_count);
  plan.resize(static_cast<size_t>(first_count));
  plan = from_first(rank, plan);
  if (!differs) return;  // those that differ say so
  const std::string difference = plan_difference(parse_plan(plan, "the plan of rank 0"), *rank.plan);
  throw Error(fmt::format("ranks 0 and {} have different plans; the first entry that differs is {}; give all ranks the same file",
                          rank.index, difference),
              {.step = 0, .program = "load"});
}

}  // namespace zeroplan
