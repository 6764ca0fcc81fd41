// Rule state: which steps may change what lives across a border.
#include <algorithm>
#include <map>

#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

bool is_eval(Program program) { return program == Program::eval_step || program == Program::eval_end; }

class Writers {
 public:
  Writers(VerifyContext& context, const PlanProgram& program) : context_(context), plan_(context.plan), program_(program) {
    for (const Operand& o : program.exit)
      if (o.tensor != kNone) by_begin_[context.ranges[o.tensor][0]] = o.tensor;
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
    const bool load = p == Program::load && ((s.kind == StepKind::host && s.op == OpKind::load_unit) || fills_zero(s));
    const bool update = p == Program::update && kernel && s.op == OpKind::optimizer_update;
    switch (plan_.tensors[tensor].kind) {
      case TensorKind::constant: return false;
      case TensorKind::weights:
        return (load && s.kind == StepKind::host) || update || (p == Program::update && s.op == OpKind::gather_weights);
      case TensorKind::moments: return load || update;
      case TensorKind::metrics: return load || writes_metrics(s, tensor);
      default: break;
    }
    if (load || update) return true;
    if (std::binary_search(shards_.begin(), shards_.end(), tensor))
      return (p == Program::micro_step && s.kind == StepKind::reduce_scatter) || (p == Program::update && fills_zero(s));
    return p == Program::micro_step ? kernel || s.kind == StepKind::copy : p == Program::update && s.op == OpKind::gather_gradient;
  }

  bool writes_metrics(const Step& s, int32_t tensor) const {
    const PlanRoles& r = plan_.roles;
    const bool of_eval = tensor == r.eval_metrics || tensor == r.eval_report;
    if (of_eval != is_eval(program_.program)) return false;
    if (s.kind == StepKind::all_reduce) return tensor != r.report && tensor != r.eval_report;
    if (s.kind != StepKind::kernel) return false;
    return s.op == OpKind::record_loss || s.op == OpKind::fold_metrics || s.op == OpKind::grad_norm || s.op == OpKind::clip_factor;
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  std::map<int64_t, int32_t> by_begin_;
  std::vector<int32_t> shards_;
};

}  // namespace

void verify_state_writers(VerifyContext& context, const PlanProgram& program) { Writers(context, program).run(); }

}  // namespace zeroplan
