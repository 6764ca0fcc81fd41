// Rule state: which steps may change what lives across a border.
#include <algorithm>
#include <climits>
#include <map>

#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

bool is_eval(Program program) { return program == Program::eval_step || program == Program::eval_end; }

class Writers {
 public:
  Writers(VerifyContext& context, const PlanProgram& program) : context_(context), plan_(context.plan), program_(program) {
    for (const Operand& o : program.exit)
      if (o.tensor != kNone && plan_.tensors[o.tensor].arena == Arena::state) by_begin_[context.ranges[o.tensor][0]] = o.tensor;
    for (const PlanUnit& u : plan_.units)
      if (u.gradient_tensor != kNone) shards_.push_back(u.gradient_tensor);
    std::sort(shards_.begin(), shards_.end());
  }

  void run() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      for (const Operand& o : step.outputs) {
        const int32_t state = state_of(o.tensor);
        if (state != kNone && !allowed(step, state))
          context_.fail("state", program_, static_cast<int>(i),
                        fmt::format("{} must not write {}", describe_step(plan_, step), context_.tensor_name(state)));
      }
      if (step.workspace.tensor != kNone && plan_.tensors[step.workspace.tensor].arena == Arena::state)
        context_.fail("state", program_, static_cast<int>(i), "workspace in the state arena");
    }
  }

 private:
  int32_t state_of(int32_t tensor) const {
    if (tensor == kNone || plan_.tensors[tensor].arena != Arena::state) return kNone;
    auto it = by_begin_.upper_bound(context_.ranges[tensor][0]);
    return it == by_begin_.begin() ? kNone : std::prev(it)->second;
  }

  static bool fills_zero(const Step& s) {
    const double* value = attribute_of<double>(s.attributes, Attr::value);
    return s.kind == StepKind::kernel && s.op == OpKind::fill && value && *value == 0.0;
  }

  bool allowed(const Step& s, int32_t tensor) const {
    const Program p = program_.program;
    const bool kernel = s.kind == StepKind::kernel;
    const bool scale = tensor == plan_.roles.loss_scale && s.kind == StepKind::kernel && s.op == OpKind::fill;  // starts from no zero
    const bool load = p == Program::load && ((s.kind == StepKind::host && s.op == OpKind::load_unit) || fills_zero(s) || scale);
    const bool update = p == Program::update && kernel && s.op == OpKind::optimizer_update;
    switch (plan_.tensors[tensor].kind) {
      case TensorKind::constant: return false;
      case TensorKind::weights:
        return (load && s.kind == StepKind::host) || update || (p == Program::update && s.op == OpKind::gather_weights) ||
               (p == Program::update && kernel && s.op == OpKind::fold_statistics);
      case TensorKind::master: return (load && s.kind == StepKind::host) || update;
      case TensorKind::moments: return load || update;
      case TensorKind::output: return load || (p == Program::eval_step && kernel && s.op == OpKind::record_output);
      case TensorKind::metrics: return load || writes_metrics(s, tensor);
      default: break;
    }
    if (load || update) return true;
    if (std::binary_search(shards_.begin(), shards_.end(), tensor))
      return (p == Program::micro_step && s.kind == StepKind::reduce_scatter) || (p == Program::update && fills_zero(s));
    return p == Program::micro_step ? kernel || s.kind == StepKind::copy : p == Program::update && s.op == OpKind::gather_gradient;
  }

  bool is_recorded(int32_t tensor) const {
    return std::any_of(plan_.statistics.begin(), plan_.statistics.end(), [&](const PlanStatistics& s) { return s.recorded == tensor; });
  }

  bool writes_metrics(const Step& s, int32_t tensor) const {
    const PlanRoles& r = plan_.roles;
    const bool of_eval = tensor == r.eval_metrics || tensor == r.eval_report;
    if (of_eval != is_eval(program_.program)) return false;
    if (s.kind == StepKind::all_reduce) return tensor != r.report && tensor != r.eval_report;
    if (s.kind != StepKind::kernel) return false;
    if (s.op == OpKind::record_statistics || s.op == OpKind::fold_statistics) return is_recorded(tensor);
    return s.op == OpKind::record_loss || s.op == OpKind::fold_metrics || s.op == OpKind::grad_norm || s.op == OpKind::clip_factor;
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  std::map<int64_t, int32_t> by_begin_;
  std::vector<int32_t> shards_;
};

// Bytes that a carried gradient shard takes: in micro_step after its reduce_scatter, in update before its last reader. Others may write
// there earlier, or later.
class CarriedBytes {
 public:
  CarriedBytes(VerifyContext& context, const PlanProgram& program) : context_(context), program_(program) {
    if (program.program != Program::micro_step && program.program != Program::update) return;
    std::map<int32_t, int> bounds;  // carried tensor -> the step that fills it, or the last that reads it
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& s = program.steps[i];
      if (program.program == Program::update) {
        for (const Operand& o : s.inputs)
          if (o.tensor != kNone && context.carried[o.tensor] && o.value == entry_value(o.tensor)) bounds[o.tensor] = static_cast<int>(i);
      } else if (s.kind == StepKind::reduce_scatter && context.carried[s.outputs[0].tensor]) {
        bounds.emplace(s.outputs[0].tensor, static_cast<int>(i));
      }
    }
    for (const auto& [tensor, step] : bounds) {
      const bool micro_step = program.program == Program::micro_step;
      by_begin_[context.ranges[tensor][0]] = {tensor, micro_step ? step : -1, micro_step ? INT_MAX : step};
    }
  }

  void run() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      for (const Operand& o : s.outputs) written(s, static_cast<int>(i), o.tensor);
      written(s, static_cast<int>(i), s.workspace.tensor);
    }
  }

 private:
  struct Shard {
    int32_t tensor;
    int after, before;  // steps between these must not write it
  };

  int32_t entry_value(int32_t tensor) {
    if (entry_.empty())
      for (const Operand& o : program_.entry) entry_[o.tensor] = o.value;
    const auto found = entry_.find(tensor);
    return found == entry_.end() ? kNone : found->second;
  }

  void written(const Step& s, int index, int32_t tensor) {
    if (tensor == kNone || context_.plan.tensors[tensor].arena != Arena::transient || by_begin_.empty()) return;
    const auto [begin, end] = context_.ranges[tensor];
    auto it = by_begin_.upper_bound(begin);
    if (it != by_begin_.begin()) --it;
    for (; it != by_begin_.end() && it->first < end; ++it) {
      const Shard& shard = it->second;
      if (context_.ranges[shard.tensor][1] > begin && shard.after < index && index < shard.before)
        context_.fail("state", program_, index,
                      fmt::format("{} must not write {}: the gradient in {} is still needed", describe_step(context_.plan, s),
                                  context_.tensor_name(tensor), context_.tensor_name(shard.tensor)));
    }
  }

  VerifyContext& context_;
  const PlanProgram& program_;
  std::map<int32_t, int32_t> entry_;  // tensor -> value
  std::map<int64_t, Shard> by_begin_;
};

}  // namespace

void verify_state_writers(VerifyContext& context, const PlanProgram& program) {
  Writers(context, program).run();
  CarriedBytes(context, program).run();
}

}  // namespace zeroplan
