// Rule source: without gathers, frees, reductions, copies and padding, micro_step and eval_step are the training graph.
#include "graph/ops/op_def.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

class SourceMatch {
 public:
  SourceMatch(VerifyContext& context, const PlanProgram& program)
      : context_(context), plan_(context.plan), program_(program), copies_(context, program), matched_(plan_.source.size(), false) {}

  void run() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      const bool computes = s.kind == StepKind::kernel || s.kind == StepKind::copy || s.kind == StepKind::all_reduce;
      if (computes && s.op != OpKind::fill_padding) match(s, static_cast<int>(i));
    }
    for (size_t n = 0; n < matched_.size(); ++n) {
      const SourceNode& node = plan_.source[n];
      if (node.program == program_.program && op_class(node.op) != OpClass::view && !matched_[n])
        fail(-1, fmt::format("no step computes {} ({})", node.outputs.empty() ? "nothing" : context_.value_name(node.outputs[0]),
                             op_name(node.op)));
    }
  }

 private:
  void fail(int index, std::string message) { context_.fail("source", program_, index, std::move(message)); }

  int32_t node_of(const Step& s) const {
    for (const Operand& o : s.outputs)
      if (o.value != kNone && context_.source_of[o.value] != kNone) return context_.source_of[o.value];
    return kNone;
  }

  void match(const Step& s, int index) {
    const int32_t n = node_of(s);
    if (n == kNone) {
      if (!is_copy(s))
        fail(index, fmt::format("{} computes {}, which the training graph does not know", describe_step(plan_, s),
                                s.outputs.empty() ? "nothing" : context_.value_name(s.outputs[0].value)));
      return;
    }
    const SourceNode& node = plan_.source[n];
    if (node.program != program_.program || node.op != s.op || !(node.attributes == s.attributes) ||
        !same_operands(node.inputs, s.inputs, true) || !same_operands(node.outputs, s.outputs, false))
      fail(index, fmt::format("{} is not the node {} of the training graph that computes {}", describe_step(plan_, s), op_name(node.op),
                              context_.value_name(node.outputs[0])));
    if (matched_[n])
      fail(index, fmt::format("{} computes {} a second time", describe_step(plan_, s), context_.value_name(node.outputs[0])));
    matched_[n] = true;
  }

  bool same_operands(const std::vector<int32_t>& node, const std::vector<Operand>& step, bool through_copies) const {
    if (node.size() != step.size()) return false;
    for (size_t i = 0; i < node.size(); ++i)
      if (node[i] != step[i].value && !(through_copies && copies_.same(node[i], step[i].value))) return false;
    return true;
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  CopyNames copies_;
  std::vector<bool> matched_;
};

}  // namespace

void verify_source(VerifyContext& context, const PlanProgram& program) {
  if (program.program == Program::micro_step || program.program == Program::eval_step) SourceMatch(context, program).run();
}

}  // namespace zeroplan
