// Rule statistics: running statistics of batch normalizations are whole on every rank, and each changes once per update, by what all
// micro-batches recorded. Rules format and reduce, for what belongs to them.
#include <algorithm>

#include "graph/ops/op_def.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

class Statistics {
 public:
  Statistics(VerifyContext& context, const PlanProgram& program) : context_(context), plan_(context.plan), program_(program) {}

  // Each state is written by one record_statistics, and by nothing else (rule state).
  void run_micro_step() {
    size_t records = 0;
    for (const Step& s : program_.steps) records += s.op == OpKind::record_statistics;
    if (records != plan_.statistics.size()) fail(-1, fmt::format("{} records instead of {}", records, plan_.statistics.size()));
    for (const PlanStatistics& s : plan_.statistics)
      if (const int index = step_of(OpKind::record_statistics, s.recorded, 0); index < 0)
        fail(-1, fmt::format("nothing is recorded in {}", context_.tensor_name(s.recorded)));
  }

  void run_update() {
    size_t folds = 0;
    for (const Step& s : program_.steps) folds += s.op == OpKind::fold_statistics;
    if (folds != plan_.statistics.size()) fail(-1, fmt::format("{} foldings instead of {}", folds, plan_.statistics.size()));
    for (const PlanStatistics& s : plan_.statistics) fold(s);
    for (const PlanUnit& unit : plan_.units)
      if (holds_statistics(unit)) chain(unit);
  }

  bool holds_statistics(const PlanUnit& unit) const {
    return std::any_of(plan_.statistics.begin(), plan_.statistics.end(),
                       [&](const PlanStatistics& s) { return &plan_.units[plan_.parameters[s.mean].unit] == &unit; });
  }

 private:
  void fail(int index, std::string message) { context_.fail("statistics", program_, index, std::move(message)); }

  // The only step of this op with the tensor as its output; -1: none, or several.
  int step_of(OpKind op, int32_t tensor, size_t output) const {
    int found = -1;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      if (s.op != op || s.outputs.size() <= output || s.outputs[output].tensor != tensor) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }

  int32_t border(const std::vector<Operand>& side, int32_t tensor) const {
    for (const Operand& o : side)
      if (o.tensor == tensor) return o.value;
    return kNone;
  }

  bool made_by(int32_t value, OpKind op) const { return producer(value, op) != nullptr; }
  const Step* producer(int32_t value, OpKind op) const {
    for (const Step& s : program_.steps)
      if (s.op == op)
        for (const Operand& o : s.outputs)
          if (value != kNone && o.value == value) return &s;
    return nullptr;
  }

  void fold(const PlanStatistics& s) {
    const int index = step_of(OpKind::fold_statistics, s.recorded, 1);
    if (index < 0) return fail(-1, fmt::format("{} is not folded once", context_.tensor_name(s.recorded)));
    const Step& step = program_.steps[index];
    const Step* reduced = producer(step.inputs[1].value, OpKind::all_reduce);
    if (!reduced || reduced->inputs[0].tensor != s.recorded || reduced->inputs[0].value != border(program_.entry, s.recorded))
      fail(index, fmt::format("{} does not fold what is recorded on all ranks", describe_step(plan_, step)));
    if (!made_by(step.inputs[2].value, OpKind::clip_factor))
      fail(index, fmt::format("{} does not know whether the update is skipped", describe_step(plan_, step)));
    const auto* starts = attribute_of<std::vector<int64_t>>(step.attributes, Attr::starts);
    const double* momentum = attribute_of<double>(step.attributes, Attr::momentum);
    const std::vector<int64_t> places = {plan_.parameters[s.mean].offset, plan_.parameters[s.variance].offset};
    if (!starts || *starts != places || !momentum || *momentum != s.momentum || step.unit != plan_.parameters[s.mean].unit)
      fail(index, fmt::format("{} does not change the running statistics of {}", describe_step(plan_, step),
                              plan_.parameters[s.mean].parameter.name));
    if (border(program_.exit, s.recorded) != step.outputs[1].value)
      fail(index, fmt::format("{} is not empty for the next window", context_.tensor_name(s.recorded)));
  }

  // From the weights at entry through every fold of the unit to those at exit.
  void chain(const PlanUnit& unit) {
    int32_t value = border(program_.entry, unit.weights_tensor);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      if (s.op != OpKind::fold_statistics || &plan_.units[s.unit] != &unit) continue;
      if (s.inputs[0].tensor != unit.weights_tensor || s.inputs[0].value != value || s.outputs[0].tensor != unit.weights_tensor)
        fail(static_cast<int>(i), fmt::format("{} does not change the unit's latest statistics", describe_step(plan_, s)));
      value = s.outputs[0].value;
    }
    if (value == kNone || border(program_.exit, unit.weights_tensor) != value)
      fail(-1, fmt::format("unit {} does not keep its updated statistics", unit.name));
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
};

}  // namespace

void verify_statistics_layout(VerifyContext& context) {
  const Plan& plan = context.plan;
  for (const PlanStatistics& s : plan.statistics) {
    const PlanParameter &mean = plan.parameters[s.mean], &variance = plan.parameters[s.variance];
    const PlanTensor& recorded = plan.tensors[s.recorded];
    const std::string name = mean.parameter.name;
    const Shape& shape = mean.parameter.shape;
    if (shape.size() != 1 || variance.parameter.shape != shape || s.mean == s.variance || mean.unit == kNone || mean.unit != variance.unit)
      context.fail("format", fmt::format("running statistics {}: mean and variance do not fit together", name));
    else if (recorded.dtype != DType::f64 || recorded.kind != TensorKind::metrics ||
             recorded.shape != Shape{plan.header.micro_batches, 2 * shape[0]} || !is_contiguous(recorded.shape, recorded.strides))
      context.fail("format",
                   fmt::format("running statistics {}: {} does not hold a row per micro-batch", name, context.tensor_name(s.recorded)));
  }
  for (const PlanUnit& unit : plan.units) {
    const auto is_statistic = [&](const UnitParameter& p) { return plan.parameters[p.parameter].parameter.statistics; };
    const auto count = std::count_if(unit.parameters.begin(), unit.parameters.end(), is_statistic);
    if (count == 0) continue;
    if (count != static_cast<int64_t>(unit.parameters.size()) || unit.trainable || unit.weights != Placement::replicated)
      context.fail("format", fmt::format("unit {}: running statistics lie apart from other parameters and whole on every rank", unit.name));
  }
  for (const PlanStatistics& s : plan.statistics)
    for (const int32_t p : {s.mean, s.variance})
      if (!plan.parameters[p].parameter.statistics)
        context.fail("format", fmt::format("parameter {} holds no running statistics", plan.parameters[p].parameter.name));
}

void verify_statistics(VerifyContext& context, const PlanProgram& program) {
  Statistics statistics(context, program);
  if (program.program == Program::micro_step) statistics.run_micro_step();
  if (program.program == Program::update) statistics.run_update();
}

}  // namespace zeroplan
