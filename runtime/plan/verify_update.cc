// Rule update: losses folded, norm over every unit, clip factor, then each unit updated once from its own gradient.
#include <algorithm>
#include <map>

#include "graph/ops/op_def.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

class Update {
 public:
  Update(VerifyContext& context, const PlanProgram& program) : context_(context), plan_(context.plan), program_(program) {
    for (size_t i = 0; i < program.steps.size(); ++i)
      for (const Operand& o : program.steps[i].outputs)
        if (o.value != kNone) producer_[o.value] = static_cast<int>(i);
  }

  void run() {
    std::vector<int> updates(plan_.units.size(), kNone), gathers(plan_.units.size(), kNone);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      const int index = static_cast<int>(i);
      if (s.op == OpKind::optimizer_update)
        once(updates, s, index);
      else if (s.op == OpKind::gather_weights)
        once(gathers, s, index);
      else if (s.op == OpKind::clip_factor)
        clip_factor(s, index);
      else if (s.op == OpKind::fold_metrics)
        fold_metrics(s, index, plan_.roles.metrics, plan_.roles.report);
      else if (!bookkeeping(s))
        fail(index, fmt::format("{} does not belong into an update", describe_step(plan_, s)));
    }
    if (clip_factors_ != 1 || folds_ != 1)
      fail(-1, fmt::format("{} clip factors and {} foldings of the metrics instead of one each", clip_factors_, folds_));
    for (size_t u = 0; u < plan_.units.size(); ++u) unit(static_cast<int32_t>(u), updates[u], gathers[u]);
  }

  void run_eval_end() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      if (s.op == OpKind::fold_metrics)
        fold_metrics(s, static_cast<int>(i), plan_.roles.eval_metrics, plan_.roles.eval_report);
      else if (s.kind != StepKind::all_reduce)
        fail(static_cast<int>(i), fmt::format("{} does not belong here", describe_step(plan_, s)));
    }
    if (folds_ != 1) fail(-1, fmt::format("{} foldings of the metrics instead of one", folds_));
  }

 private:
  void fail(int index, std::string message) { context_.fail("update", program_, index, std::move(message)); }

  void once(std::vector<int>& found, const Step& s, int index) {
    if (found[s.unit] != kNone) fail(index, fmt::format("{} for the second time", describe_step(plan_, s)));
    found[s.unit] = index;
  }

  static bool bookkeeping(const Step& s) {
    return s.kind == StepKind::all_reduce || s.op == OpKind::gather_gradient ||
           (s.kind == StepKind::kernel && (s.op == OpKind::grad_norm || s.op == OpKind::fill || s.op == OpKind::fold_statistics));
  }

  int32_t border(const std::vector<Operand>& side, int32_t tensor) const {
    for (const Operand& o : side)
      if (o.tensor == tensor) return o.value;
    return kNone;
  }
  bool holds_entry(const Operand& o, int32_t tensor) const {
    return tensor != kNone && o.tensor == tensor && o.value != kNone && o.value == border(program_.entry, tensor);
  }
  // The step that gives the value, if it is of this op and the value its output `output`.
  const Step* from(int32_t value, OpKind op, size_t output = 0) const {
    const auto it = producer_.find(value);
    if (it == producer_.end()) return nullptr;
    const Step& s = program_.steps[it->second];
    return s.op == op && s.outputs.size() > output && s.outputs[output].value == value ? &s : nullptr;
  }

  void fold_metrics(const Step& s, int index, int32_t metrics, int32_t report) {
    ++folds_;
    const Step* reduced = from(s.inputs[0].value, OpKind::all_reduce);
    if (!reduced || !holds_entry(reduced->inputs[0], metrics) || !holds_entry(s.inputs[1], report))
      fail(index, "fold_metrics does not fold the metrics summed over all ranks");
    const bool scaled = metrics == plan_.roles.metrics && plan_.roles.loss_scale != kNone;
    if ((s.inputs.size() > 2) != scaled || (scaled && !holds_entry(s.inputs[2], plan_.roles.loss_scale)))
      fail(index, "fold_metrics does not divide by the loss scale that the gradients were computed with");
  }

  // Back through the norms of all units to the limbs at entry.
  void clip_factor(const Step& s, int index) {
    ++clip_factors_;
    std::vector<int> norms(plan_.units.size(), 0);
    const Step* reduced = from(s.inputs[0].value, OpKind::all_reduce);
    int32_t value = reduced ? reduced->inputs[0].value : kNone;
    for (const Step* norm; (norm = from(value, OpKind::grad_norm)) != nullptr; value = norm->inputs[2].value) {
      const PlanUnit& u = plan_.units[norm->unit];
      if (++norms[norm->unit] > 1) break;
      if (!holds_entry(norm->inputs[0], u.gradient_tensor) || !from(norm->inputs[1].value, OpKind::fold_metrics))
        fail(producer_.at(norm->outputs[0].value),
             fmt::format("{} does not read the unit's accumulated gradient and the folded metrics", describe_step(plan_, *norm)));
    }
    if (value == kNone || value != border(program_.entry, plan_.roles.norm_limbs))
      fail(index, "the norm does not start from the limbs at entry, or is not summed over all ranks");
    for (size_t u = 0; u < norms.size(); ++u)
      if (norms[u] != (plan_.units[u].trainable ? 1 : 0))
        fail(index, fmt::format("unit {} is in the norm {} times", plan_.units[u].name, norms[u]));
    if (!from(s.inputs[1].value, OpKind::fold_metrics)) fail(index, "the clip factor does not read the folded metrics");
    loss_scale(s, index);
  }

  // What follows from an overflow is what the next step starts with.
  void loss_scale(const Step& s, int index) {
    const std::pair<int32_t, size_t> states[] = {{plan_.roles.loss_scale, 2}, {plan_.roles.overflows, 3}};
    for (const auto& [tensor, place] : states) {
      if (tensor == kNone) continue;
      const bool moved = s.inputs.size() == 4 && s.outputs.size() == 4 && holds_entry(s.inputs[place], tensor) &&
                         s.outputs[place].value == border(program_.exit, tensor);
      if (!moved) fail(index, fmt::format("the clip factor does not move {} on", context_.tensor_name(tensor)));
    }
  }

  bool own_weights(const Operand& o, const PlanUnit& u, int32_t unit) const {
    if (o.value == kNone || o.value != border(program_.entry, u.weights_tensor)) return false;
    if (u.weights != Placement::replicated || u.optimizer != Placement::sharded) return o.tensor == u.weights_tensor;
    const PlanTensor& t = plan_.tensors[o.tensor];
    return t.per_rank && t.unit == unit && context_.same_bytes(o.tensor, u.weights_tensor);
  }

  bool own_gradient(const Operand& o, const PlanUnit& u, int32_t unit) const {
    if (u.optimizer == Placement::sharded) return holds_entry(o, u.gradient_tensor);
    const Step* gather = from(o.value, OpKind::gather_gradient);
    return gather && gather->unit == unit && holds_entry(gather->inputs[0], u.gradient_tensor);
  }

  void unit(int32_t id, int update, int gather) {
    const PlanUnit& u = plan_.units[id];
    const bool gathered = u.trainable && u.weights == Placement::replicated && u.optimizer == Placement::sharded;
    if ((update != kNone) != u.trainable)
      return fail(-1, fmt::format("unit {} is {}", u.name, u.trainable ? "not updated" : "frozen and updated"));
    if ((gather != kNone) != gathered)
      return fail(gather, fmt::format("the weights of unit {} are {}gathered after the update", u.name, gather == kNone ? "not " : ""));
    if (!u.trainable) return;
    const Step& s = program_.steps[update];
    const size_t moments = u.moment_tensors.size();
    if (s.inputs.size() != 3 + moments || s.outputs.size() != 2 + moments)
      return fail(update, fmt::format("{} has the wrong number of operands", describe_step(plan_, s)));
    bool good = own_weights(s.inputs[0], u, id) && own_gradient(s.inputs[1], u, id) && from(s.inputs[2].value, OpKind::clip_factor);
    for (size_t m = 0; m < moments; ++m)
      good =
          good && holds_entry(s.inputs[3 + m], u.moment_tensors[m]) && s.outputs[1 + m].value == border(program_.exit, u.moment_tensors[m]);
    if (!good)
      fail(update, fmt::format("{} does not work on its own weights, gradient, moments and the clip factor", describe_step(plan_, s)));
    const std::string* optimizer = attribute_of<std::string>(s.attributes, Attr::optimizer);
    if (!optimizer || *optimizer != plan_.header.optimizer)
      fail(update, fmt::format("{} is not by the optimizer that the header names", describe_step(plan_, s)));
    exits(u, s, update, gather);
  }

  void exits(const PlanUnit& u, const Step& s, int update, int gather) {
    int32_t weights = s.outputs[0].value;
    if (gather != kNone) {
      if (program_.steps[gather].inputs[0].value != weights)
        fail(gather, fmt::format("{} does not gather the updated weights", describe_step(plan_, program_.steps[gather])));
      weights = program_.steps[gather].outputs[0].value;
    }
    if (border(program_.exit, u.weights_tensor) != weights) fail(update, fmt::format("unit {} does not keep its updated weights", u.name));
    if (context_.carried[u.gradient_tensor]) return;  // nothing of it is left
    const int32_t gradient = border(program_.exit, u.gradient_tensor);
    if (gradient != s.outputs.back().value && !from(gradient, OpKind::fill))
      fail(update, fmt::format("the gradient shard of unit {} is not zeroed", u.name));
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  std::map<int32_t, int> producer_;  // value -> step
  int clip_factors_ = 0, folds_ = 0;
};

}  // namespace

void verify_update(VerifyContext& context, const PlanProgram& program) {
  if (program.program == Program::update) Update(context, program).run();
  if (program.program == Program::eval_end) Update(context, program).run_eval_end();
}

}  // namespace zeroplan
