#include "tests/plan/mutations.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"

namespace zeroplan::test {
namespace {

template <typename Fn>
std::vector<std::pair<int, int>> steps_where(const Plan& plan, Fn&& fn) {
  std::vector<std::pair<int, int>> found;
  for (size_t p = 0; p < plan.programs.size(); ++p)
    for (size_t i = 0; i < plan.programs[p].steps.size(); ++i)
      if (fn(plan.programs[p], i)) found.emplace_back(static_cast<int>(p), static_cast<int>(i));
  return found;
}

template <typename T>
const T& pick(const std::vector<T>& list, std::mt19937_64& random) {
  return list[random() % list.size()];
}

std::string place(const Plan& plan, const std::pair<int, int>& at) {
  return fmt::format("{} step {} ({})", program_name(plan.programs[at.first].program), at.second,
                     describe_step(plan, plan.programs[at.first].steps[at.second]));
}

std::string drop_wait(Plan& plan, std::mt19937_64& random) {
  const auto places = steps_where(plan, [](const PlanProgram& p, size_t i) { return !p.steps[i].waits.empty(); });
  if (places.empty()) return {};
  const auto at = pick(places, random);
  auto& waits = plan.programs[at.first].steps[at.second].waits;
  const size_t n = random() % waits.size();
  const std::string text = fmt::format("{} no longer waits for {}", place(plan, at), waits[n]);
  waits.erase(waits.begin() + static_cast<int64_t>(n));
  return text;
}

std::string swap_steps(Plan& plan, std::mt19937_64& random) {
  const auto places = steps_where(plan, [](const PlanProgram& p, size_t i) { return i + 1 < p.steps.size(); });
  const auto at = pick(places, random);
  const std::string text = fmt::format("{} exchanged with the next", place(plan, at));
  swap_with_next(plan.programs[at.first], at.second);
  return text;
}

std::string move_offset(Plan& plan, std::mt19937_64& random) {
  PlanTensor& t = plan.tensors[random() % plan.tensors.size()];
  const int64_t unit = random() % 2 ? kArenaAlignment : dtype_bytes(t.dtype);
  const int64_t by = unit * (1 + static_cast<int64_t>(random() % 8)) * (random() % 2 ? 1 : -1);
  t.offset = std::max<int64_t>(0, t.offset + by);
  return fmt::format("{} moved by {} bytes", t.name, by);
}

std::string drop_free(Plan& plan, std::mt19937_64& random) {
  const auto places = steps_where(plan, [](const PlanProgram& p, size_t i) { return p.steps[i].kind == StepKind::free; });
  if (places.empty()) return {};
  const auto at = pick(places, random);
  const std::string text = place(plan, at) + " removed";
  remove_step(plan.programs[at.first], at.second);
  return text;
}

bool collective(const Step& s) {
  return s.kind == StepKind::all_gather || s.kind == StepKind::reduce_scatter || s.kind == StepKind::all_reduce;
}

std::string change_collective(Plan& plan, std::mt19937_64& random) {
  const auto at = pick(steps_where(plan, [](const PlanProgram& p, size_t i) { return collective(p.steps[i]); }), random);
  const std::string text = place(plan, at);
  Step& s = plan.programs[at.first].steps[at.second];
  switch (random() % 4) {
    case 0: s.unit = static_cast<int32_t>(random() % plan.units.size()); return text + " of another unit";
    case 1: s.stream = static_cast<StreamKind>(random() % kStreams); return text + " on another stream";
    case 2: {
      constexpr std::pair<StepKind, OpKind> kinds[] = {{StepKind::all_gather, OpKind::gather_weights},
                                                       {StepKind::all_gather, OpKind::gather_gradient},
                                                       {StepKind::reduce_scatter, OpKind::reduce_scatter},
                                                       {StepKind::all_reduce, OpKind::all_reduce}};
      std::tie(s.kind, s.op) = kinds[random() % std::size(kinds)];
      return text + " of another kind";
    }
    default: {
      const auto others =
          steps_where(plan, [&](const PlanProgram& p, size_t i) { return p.steps[i].kind == s.kind && p.steps[i].unit != s.unit; });
      if (others.empty()) return {};
      const auto other = pick(others, random);
      s.inputs[0] = plan.programs[other.first].steps[other.second].inputs[0];
      return text + " on the shard of another";
    }
  }
}

std::string redirect_read(Plan& plan, std::mt19937_64& random) {
  const auto at = pick(steps_where(plan, [](const PlanProgram& p, size_t i) { return !p.steps[i].inputs.empty(); }), random);
  Step& s = plan.programs[at.first].steps[at.second];
  Operand& o = s.inputs[random() % s.inputs.size()];
  if (o.tensor == kNone) return {};
  if (random() % 4 == 0) {  // with the value that another step reads there
    const auto other = pick(steps_where(plan, [](const PlanProgram& p, size_t i) { return !p.steps[i].inputs.empty(); }), random);
    const auto& inputs = plan.programs[other.first].steps[other.second].inputs;
    const std::string text = fmt::format("{} reads an operand of {}", place(plan, at), place(plan, other));
    o = inputs[random() % inputs.size()];
    return text;
  }
  std::vector<int32_t> others;
  const PlanTensor& from = plan.tensors[o.tensor];
  const bool same_shape = random() % 4 != 0;
  for (size_t t = 0; t < plan.tensors.size(); ++t)
    if (static_cast<int32_t>(t) != o.tensor && plan.tensors[t].dtype == from.dtype && (!same_shape || plan.tensors[t].shape == from.shape))
      others.push_back(static_cast<int32_t>(t));
  if (others.empty()) return {};
  const std::string text = fmt::format("{} reads another tensor than {}", place(plan, at), from.name);
  o.tensor = pick(others, random);
  return text;
}

}  // namespace

const char* mutation_name(Mutation mutation) {
  constexpr const char* kNames[kMutations] = {"drop a wait", "swap adjacent steps", "move an offset",
                                              "drop a free", "change a collective", "redirect a read"};
  return kNames[static_cast<int>(mutation)];
}

void remove_step(PlanProgram& program, int index) {
  program.steps.erase(program.steps.begin() + index);
  for (Step& s : program.steps) {
    std::erase(s.waits, index);
    for (int32_t& wait : s.waits) wait -= wait > index;
  }
}

void swap_with_next(PlanProgram& program, int index) {
  std::swap(program.steps[index], program.steps[index + 1]);
  for (Step& s : program.steps)
    for (int32_t& wait : s.waits)
      if (wait == index || wait == index + 1) wait = 2 * index + 1 - wait;
}

void restate(Plan& plan) {
  for (const PlanTensor& t : plan.tensors) {
    int64_t& bytes = plan.arena_bytes[static_cast<int>(t.arena)];
    bytes = std::max(bytes, tensor_range(plan, t).second);
  }
  for (const PlanProgram& p : plan.programs) plan.transient_lower_bound[static_cast<int>(p.program)] = live_bytes(plan, p).peak;
  plan.header.digest = plan_digest(plan);
}

std::string mutate(Plan& plan, Mutation mutation, std::mt19937_64& random) {
  std::string text;
  const std::string before = serialize_plan(plan);
  switch (mutation) {
    case Mutation::drop_wait: text = drop_wait(plan, random); break;
    case Mutation::swap_steps: text = swap_steps(plan, random); break;
    case Mutation::move_offset: text = move_offset(plan, random); break;
    case Mutation::drop_free: text = drop_free(plan, random); break;
    case Mutation::change_collective: text = change_collective(plan, random); break;
    case Mutation::redirect_read: text = redirect_read(plan, random); break;
  }
  if (serialize_plan(plan) == before) return {};
  restate(plan);
  return text;
}

}  // namespace zeroplan::test
