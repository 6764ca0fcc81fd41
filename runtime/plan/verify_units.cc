// Rules gather (units live from all_gather to free), reduce (each gradient reduced once, padding written), collective (streams), unit
// (load, save).
#include <algorithm>
#include <map>

#include "runtime/plan/verify_context.h"

namespace zeroplan {

void verify_units(VerifyContext& context, const PlanProgram& program) {
  const Plan& plan = context.plan;
  std::map<std::pair<int32_t, std::array<int64_t, 2>>, int> live;  // (unit, bytes of the slot) -> all_gather
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& s = program.steps[i];
    const int index = static_cast<int>(i);
    if (s.kind == StepKind::all_gather && plan.tensors[s.outputs[0].tensor].arena == Arena::transient) {
      if (!live.emplace(std::pair(s.unit, context.ranges[s.outputs[0].tensor]), index).second)
        context.fail("gather", program, index, fmt::format("{}: gathered again into a slot that is not freed", describe_step(plan, s)));
      if (static_cast<int>(live.size()) > plan.header.max_live_units)
        context.fail(
            "gather", program, index,
            fmt::format("{}: {} units are gathered, at most {} may be", describe_step(plan, s), live.size(), plan.header.max_live_units));
    }
    if (s.kind == StepKind::free && live.erase({s.unit, context.ranges[s.inputs[0].tensor]}) == 0)
      context.fail("gather", program, index,
                   fmt::format("{}: {} is not gathered", describe_step(plan, s), context.tensor_name(s.inputs[0].tensor)));
  }
  for (const auto& [slot, index] : live)
    context.fail("gather", program, index, fmt::format("{} is never freed", describe_step(plan, program.steps[index])));
}

namespace {

bool has_gaps(const PlanUnit& unit) {
  int64_t end = 0;
  for (const UnitParameter& p : unit.parameters) {
    if (p.offset != end) return true;
    end = p.offset + p.elements;
  }
  return end != unit.padded_elements;
}

class Reductions {
 public:
  Reductions(VerifyContext& context, const PlanProgram& program)
      : context_(context), plan_(context.plan), program_(program), copies_(context, program), reductions_(plan_.units.size(), 0) {
    for (const auto& [parameter, value] : plan_.gradients)
      if (!gradient_of_.emplace(parameter, value).second)
        context.fail("reduce", fmt::format("two gradients of parameter {}", plan_.parameters[parameter].parameter.name));
  }

  void run() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      if (s.op == OpKind::fill_padding && s.kind == StepKind::kernel) padded_[s.outputs[0].value] = s.unit;
      if (s.kind == StepKind::reduce_scatter) reduction(s, static_cast<int>(i));
      if (s.kind == StepKind::all_reduce && !may_sum()) fail(static_cast<int>(i), "an all_reduce outside of update and eval_end");
    }
    if (program_.program != Program::micro_step) return;
    for (size_t u = 0; u < reductions_.size(); ++u)
      if (reductions_[u] != (plan_.units[u].trainable ? 1 : 0))
        context_.fail("reduce", program_, -1,
                      fmt::format("the gradients of unit {} are reduced {} times", plan_.units[u].name, reductions_[u]));
  }

 private:
  // In micro_step as a node of the training graph (rule source), where every rank has a micro-batch and no round follows.
  bool may_sum() const {
    const bool whole_round = plan_.header.micro_batches == plan_.header.ranks;
    return program_.program == Program::update || program_.program == Program::eval_end ||
           (program_.program == Program::micro_step && whole_round);
  }

  void fail(int index, std::string message) { context_.fail("reduce", program_, index, std::move(message)); }

  void reduction(const Step& s, int index) {
    const PlanUnit& unit = plan_.units[s.unit];
    ++reductions_[s.unit];
    if (program_.program != Program::micro_step) fail(index, fmt::format("{} outside of micro_step", describe_step(plan_, s)));
    for (size_t k = 0; k < unit.parameters.size(); ++k) {
      const auto wanted = gradient_of_.find(unit.parameters[k].parameter);
      if (wanted == gradient_of_.end() || !copies_.same(s.inputs[2 + k].value, wanted->second))
        fail(index, fmt::format("{}: {} is not the gradient of parameter {}", describe_step(plan_, s),
                                context_.value_name(s.inputs[2 + k].value), plan_.parameters[unit.parameters[k].parameter].parameter.name));
    }
    const auto padding = padded_.find(s.inputs[1].value);
    const bool padded = s.inputs[1].value != kNone && padding != padded_.end() && padding->second == s.unit;
    if (!padded && (has_gaps(unit) || s.inputs[1].value != kNone))
      fail(index, fmt::format("{}: the padding of the unit is not written", describe_step(plan_, s)));
    const auto exit =
        std::find_if(program_.exit.begin(), program_.exit.end(), [&](const Operand& o) { return o.tensor == unit.gradient_tensor; });
    if (exit != program_.exit.end() && exit->value != s.outputs[0].value)
      fail(index, fmt::format("{}: its result is not what the program leaves in the shard", describe_step(plan_, s)));
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  CopyNames copies_;
  std::vector<int> reductions_;             // by unit
  std::map<int32_t, int32_t> gradient_of_;  // parameter -> value
  std::map<int32_t, int32_t> padded_;       // value of a fill_padding -> unit
};

}  // namespace

void verify_reductions(VerifyContext& context, const PlanProgram& program) { Reductions(context, program).run(); }

void verify_collectives(VerifyContext& context, const PlanProgram& program) {
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& s = program.steps[i];
    const bool reduction = s.kind == StepKind::reduce_scatter || s.kind == StepKind::all_reduce;
    const bool wrong = (s.kind == StepKind::all_gather && s.stream != StreamKind::gather) || (reduction && s.stream != StreamKind::reduce);
    if (wrong)
      context.fail(
          "collective", program, static_cast<int>(i),
          fmt::format("{} on the {} stream: its communicator belongs to another", describe_step(context.plan, s), stream_name(s.stream)));
  }
}

void verify_once_per_unit(VerifyContext& context, const PlanProgram& program) {
  std::vector<int> loads(context.plan.units.size(), 0), exports(context.plan.units.size(), 0);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& s = program.steps[i];
    if (s.kind != StepKind::host) continue;
    const bool load = s.op == OpKind::load_unit;
    ++(load ? loads : exports)[s.unit];
    if (program.program != (load ? Program::load : Program::save))
      context.fail("unit", program, static_cast<int>(i), fmt::format("{} in this program", describe_step(context.plan, s)));
  }
  for (size_t u = 0; u < context.plan.units.size(); ++u) {
    if (program.program == Program::load && loads[u] != 1)
      context.fail("unit", program, -1, fmt::format("unit {} is loaded {} times", context.plan.units[u].name, loads[u]));
    if (program.program == Program::save && exports[u] != 1)
      context.fail("unit", program, -1, fmt::format("unit {} is exported {} times", context.plan.units[u].name, exports[u]));
  }
}

}  // namespace zeroplan
