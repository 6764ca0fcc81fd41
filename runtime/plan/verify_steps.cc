// Rules format (operands by kind of step) and types (what the op's own shape rule says of a kernel's operands).
#include <algorithm>
#include <exception>

#include "graph/ops/op_def.h"
#include "graph/ops/output_layout.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

class StepFormat {
 public:
  StepFormat(VerifyContext& context, const PlanProgram& program, int index)
      : context_(context), plan_(context.plan), program_(program), step_(program.steps[index]), index_(index) {}

  void run() {
    if (!operands_present()) return;
    if (needs_unit() && step_.unit == kNone) return fail(fmt::format("{} names no unit", describe_step(plan_, step_)));
    switch (step_.kind) {
      case StepKind::kernel: kernel(); break;
      case StepKind::copy: copy(); break;
      case StepKind::all_gather: all_gather(); break;
      case StepKind::reduce_scatter: reduce_scatter(); break;
      case StepKind::all_reduce: all_reduce(); break;
      case StepKind::free: counts(1, 0); break;
      case StepKind::host: host(); break;
    }
    for (const auto& pair : step_.in_place) in_place(pair);
  }

 private:
  void fail(std::string message) { context_.fail("format", program_, index_, std::move(message)); }
  const PlanTensor& tensor(const Operand& o) const { return plan_.tensors[o.tensor]; }
  const PlanUnit& unit() const { return plan_.units[step_.unit]; }

  bool operands_present() {
    bool good = true;
    for (const Operand& o : step_.outputs) {
      if (o.tensor != kNone && (o.value != kNone || step_.kind == StepKind::all_gather)) continue;
      fail(fmt::format("{}: an output without tensor or value", describe_step(plan_, step_)));
      good = false;
    }
    for (const Operand& o : step_.inputs)
      if (o.tensor == kNone && (o.value != kNone || !may_be_left_out(o))) {
        fail(fmt::format("{}: an input without tensor", describe_step(plan_, step_)));
        good = false;
      }
    return good;
  }

  // Of a kernel the op's shape rule says which (check_types), but for the ops that are judged here.
  bool may_be_left_out(const Operand& input) const {
    if (step_.kind == StepKind::kernel)
      return step_.op != OpKind::copy && step_.op != OpKind::fill_padding && step_.op != OpKind::optimizer_update;
    return step_.kind == StepKind::reduce_scatter && &input == step_.inputs.data();
  }

  bool needs_unit() const {
    return step_.kind == StepKind::all_gather || step_.kind == StepKind::reduce_scatter || step_.kind == StepKind::free ||
           step_.kind == StepKind::host || step_.op == OpKind::fill_padding || step_.op == OpKind::optimizer_update ||
           step_.op == OpKind::grad_norm || step_.op == OpKind::fold_statistics;
  }

  bool counts(size_t inputs, size_t outputs) {
    if (step_.inputs.size() == inputs && step_.outputs.size() == outputs) return true;
    fail(fmt::format("{} has {} inputs and {} outputs instead of {} and {}", describe_step(plan_, step_), step_.inputs.size(),
                     step_.outputs.size(), inputs, outputs));
    return false;
  }

  bool whole_buffer(const Operand& o, DType dtype) {
    const PlanTensor& t = tensor(o);
    if (!t.per_rank && t.dtype == dtype && t.shape == Shape{unit().padded_elements} && is_contiguous(t.shape, t.strides) &&
        t.offset % kArenaAlignment == 0)
      return true;
    fail(fmt::format("{} is no aligned buffer of the {} elements of unit {}", context_.tensor_name(o.tensor), unit().padded_elements,
                     unit().name));
    return false;
  }

  // operands[first + k] is parameter k of the unit at its place in the whole buffer.
  void parts(const Operand& whole, const std::vector<Operand>& operands, size_t first, std::string_view rule) {
    for (size_t k = 0; k < unit().parameters.size(); ++k) {
      const UnitParameter& part = unit().parameters[k];
      const PlanTensor& t = tensor(operands[first + k]);
      const PlanTensor& w = tensor(whole);
      const Parameter& p = plan_.parameters[part.parameter].parameter;
      const bool placed = t.arena == w.arena && t.offset == w.offset + part.offset * dtype_bytes(w.dtype) && t.dtype == w.dtype &&
                          t.shape == p.shape && is_contiguous(t.shape, t.strides) && !t.per_rank;
      if (!placed)
        context_.fail(rule, program_, index_,
                      fmt::format("{}: {} is not at the place of {} in {}", describe_step(plan_, step_),
                                  context_.tensor_name(operands[first + k].tensor), p.name, context_.tensor_name(whole.tensor)));
    }
  }

  void kernel() {
    if (op_class(step_.op) != OpClass::kernel) return fail(fmt::format("{} has no kernel", op_name(step_.op)));
    if (step_.outputs.empty()) return fail(fmt::format("{} has no output", op_name(step_.op)));
    for (size_t i = 0; i < step_.outputs.size(); ++i)
      if (const PlanTensor& t = tensor(step_.outputs[i]); !writes_layout(step_.op, static_cast<int>(i), t.shape, t.strides))
        fail(fmt::format("{} is written through strides", context_.tensor_name(step_.outputs[i].tensor)));
    if (step_.op == OpKind::copy) copy();
    if (step_.op == OpKind::fill_padding && counts(unit().parameters.size(), 1) && whole_buffer(step_.outputs[0], unit().reduce_dtype))
      parts(step_.outputs[0], step_.inputs, 0, "reduce");
    if (step_.workspace.tensor != kNone && tensor(step_.workspace).kind != TensorKind::workspace) fail("its workspace is another tensor");
  }

  void copy() {
    if (!counts(1, 1)) return;
    if (tensor(step_.inputs[0]).shape != tensor(step_.outputs[0]).shape || tensor(step_.inputs[0]).dtype != tensor(step_.outputs[0]).dtype)
      fail("a copy changes shape or type");
  }

  void all_gather() {
    const bool weights = step_.op == OpKind::gather_weights;
    if (!weights && step_.op != OpKind::gather_gradient) return fail(fmt::format("{} gathers nothing", op_name(step_.op)));
    const WeightCopy copy = weight_copy(unit(), step_.outputs.empty() ? unit().dtype : tensor(step_.outputs[0]).dtype);
    const bool sharded = weights && copy.placement == Placement::sharded;
    if (!counts(1, sharded ? 1 + unit().parameters.size() : 1)) return;
    const int32_t shard = step_.inputs[0].tensor;
    if (!whole_buffer(step_.outputs[0], weights ? copy.dtype : unit().gradient_dtype)) return;
    if (sharded) parts(step_.outputs[0], step_.outputs, 1, "gather");
    const PlanTensor& t = tensor(step_.inputs[0]);
    const bool own_part =
        t.per_rank && t.unit == step_.unit && t.arena == tensor(step_.outputs[0]).arena && t.offset == tensor(step_.outputs[0]).offset;
    if (sharded ? shard != unit_weights(unit(), copy.dtype) : weights ? !own_part : shard != unit().gradient_tensor)
      context_.fail("gather", program_, index_,
                    fmt::format("{} gathers {}, which is no shard of the unit", describe_step(plan_, step_), context_.tensor_name(shard)));
  }

  void reduce_scatter() {
    if (!counts(2 + unit().parameters.size(), 1) || !whole_buffer(step_.inputs[1], unit().reduce_dtype)) return;
    parts(step_.inputs[1], step_.inputs, 2, "reduce");
    const int32_t shard = unit().gradient_tensor, accumulator = step_.inputs[0].tensor;
    if (one_round(plan_)) {
      if (accumulator != kNone || step_.outputs[0].tensor != shard || !step_.in_place.empty())
        context_.fail(
            "reduce", program_, index_,
            fmt::format("{} does not fold from zero into the unit's gradient shard, as one round must", describe_step(plan_, step_)));
    } else if (accumulator != shard || step_.outputs[0].tensor != shard) {
      context_.fail("reduce", program_, index_,
                    fmt::format("{} does not accumulate on the unit's gradient shard: the gradients of other rounds are lost",
                                describe_step(plan_, step_)));
    } else {
      need_in_place();
    }
  }

  void all_reduce() {
    if (!counts(1, 1)) return;
    const DType dtype = tensor(step_.inputs[0]).dtype;
    if (dtype != DType::f64 && dtype != DType::i64) fail("an all_reduce sums f64 or i64");
    need_in_place();
  }

  void need_in_place() {
    if (step_.in_place != std::vector<std::pair<int32_t, int32_t>>{{0, 0}})
      fail(fmt::format("{} must declare its output in place of its input", describe_step(plan_, step_)));
  }

  void host() {
    if (step_.op == OpKind::export_unit) {
      // Of a unit with a master, not what it was rounded to.
      if (counts(1, 0)) whole_buffer(step_.inputs[0], has_master(unit()) ? unit().gradient_dtype : unit().dtype);
      return;
    }
    if (step_.op != OpKind::load_unit) return fail(fmt::format("{} is no step of the host", op_name(step_.op)));
    std::vector<int32_t> expected = {unit().weights_tensor};
    expected.insert(expected.end(), unit().moment_tensors.begin(), unit().moment_tensors.end());
    const int32_t gradient = unit().gradient_tensor;
    if (gradient != kNone && !context_.carried[gradient]) expected.push_back(gradient);
    if (!counts(0, expected.size())) return;
    for (size_t i = 0; i < expected.size(); ++i)
      if (step_.outputs[i].tensor != expected[i])
        fail(fmt::format("load_unit writes {} where {} belongs", context_.tensor_name(step_.outputs[i].tensor),
                         context_.tensor_name(expected[i])));
  }

  // In-place pairs that the op allows, on exactly the same bytes.
  void in_place(const std::pair<int32_t, int32_t>& pair) {
    const Operand& output = step_.outputs[pair.first];
    const Operand& input = step_.inputs[pair.second];
    if (output.tensor == kNone || input.tensor == kNone) return fail("an in-place pair without tensor");
    const PlanTensor& a = tensor(output);
    const PlanTensor& b = tensor(input);
    const bool gather = step_.kind == StepKind::all_gather && b.per_rank;
    const bool same =
        context_.same_bytes(output.tensor, input.tensor) && a.dtype == b.dtype && a.shape == b.shape && is_contiguous(b.shape, b.strides);
    if (!same && !gather)
      context_.fail("in_place", program_, index_,
                    fmt::format("{} and {} are declared to share bytes and do not", context_.tensor_name(output.tensor),
                                context_.tensor_name(input.tensor)));
    const auto& allowed = op_def(step_.op).in_place;
    if (std::find(allowed.begin(), allowed.end(), std::pair<int, int>(pair)) == allowed.end())
      context_.fail("in_place", program_, index_,
                    fmt::format("{} cannot write output {} over input {}", op_name(step_.op), pair.first, pair.second));
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  const Step& step_;
  int index_;
};

// The step as a node of a graph of its own, for the op's rules.
struct LoneNode {
  Graph graph;
  Node node;

  LoneNode(const Plan& plan, const Step& step) {
    for (const Operand& o : step.inputs) {
      node.inputs.push_back(o.tensor == kNone ? kNone : static_cast<ValueId>(graph.values.size()));
      if (o.tensor == kNone) continue;
      const PlanTensor& t = plan.tensors[o.tensor];
      graph.values.push_back({.name = t.name, .dtype = t.dtype, .shape = t.shape});
    }
    for (const Operand& o : step.outputs) {
      const PlanTensor& t = plan.tensors[o.tensor];
      node.outputs.push_back(static_cast<ValueId>(graph.values.size()));
      graph.values.push_back({.name = t.name, .dtype = t.dtype, .shape = t.shape});
    }
    node.op = step.op;
    node.attributes = step.attributes;
  }
};

void check_types(VerifyContext& context, const PlanProgram& program, int index) {
  const Step& step = program.steps[index];
  const Plan& plan = context.plan;
  const OpDef& def = op_def(step.op);
  const LoneNode lone(plan, step);
  const std::vector<OutputType> types = def.infer(lone.graph, lone.node);
  bool same = types.size() == step.outputs.size();
  for (size_t i = 0; same && i < types.size(); ++i) {
    const PlanTensor& t = plan.tensors[step.outputs[i].tensor];
    same = t.dtype == types[i].dtype && t.shape == types[i].shape;
  }
  if (!same) context.fail("types", program, index, fmt::format("{} does not give tensors of these types and shapes", op_name(step.op)));
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i].tensor == kNone) continue;
    const PlanTensor& t = plan.tensors[step.inputs[i].tensor];
    if (is_contiguous(t.shape, t.strides) || step.op == OpKind::copy) continue;
    if (!def.accepts || !def.accepts(lone.graph, lone.node, static_cast<int>(i), t.shape, t.strides))
      context.fail("types", program, index,
                   fmt::format("{} does not read {} through strides", op_name(step.op), context.tensor_name(step.inputs[i].tensor)));
  }
  const int64_t needed = workspace_bytes(lone.graph, lone.node, plan.header.device, plan.header.threads);
  const int64_t given =
      step.workspace.tensor == kNone ? 0 : context.ranges[step.workspace.tensor][1] - context.ranges[step.workspace.tensor][0];
  if (given < needed)
    context.fail("types", program, index, fmt::format("{} needs {} bytes of workspace and has {}", op_name(step.op), needed, given));
}

}  // namespace

void verify_steps(VerifyContext& context, const PlanProgram& program) {
  for (size_t i = 0; i < program.steps.size() && !context.full(); ++i) {
    const size_t before = context.result().violations.size();
    StepFormat(context, program, static_cast<int>(i)).run();
    const Step& step = program.steps[i];
    const bool model_op = step.kind == StepKind::kernel && step.op != OpKind::fill_padding && step.op != OpKind::optimizer_update;
    if (!model_op || context.result().violations.size() != before) continue;
    try {
      check_types(context, program, static_cast<int>(i));
    } catch (const std::exception& e) {
      context.fail("types", program, static_cast<int>(i), fmt::format("{}: {}", op_name(step.op), e.what()));
    }
  }
}

}  // namespace zeroplan
