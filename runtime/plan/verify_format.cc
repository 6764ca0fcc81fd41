// Rule format: every index in range, tensors inside their arena and aligned, units laid out without overlap.
#include <algorithm>

#include "base/shape.h"
#include "base/type_name.h"
#include "runtime/plan/report.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

class Indices {
 public:
  explicit Indices(VerifyContext& context) : context_(context), plan_(context.plan) {}

  bool run() {
    for (const PlanTensor& t : plan_.tensors) tensor(t);
    for (size_t i = 0; i < plan_.units.size(); ++i) unit(plan_.units[i], static_cast<int>(i));
    for (const PlanValue& v : plan_.values) need(v.parameter, plan_.parameters.size(), "value " + v.name + ": parameter");
    for (const PlanParameter& p : plan_.parameters) need(p.unit, plan_.units.size(), "parameter " + p.parameter.name + ": unit");
    for (const PlanOutput& o : plan_.outputs) need(o.tensor, plan_.tensors.size(), "output " + o.name + ": tensor", false);
    for (const PlanInput& i : plan_.inputs) need(i.tensor, plan_.tensors.size(), "input " + i.name + ": tensor", false);
    for (const PlanConstant& c : plan_.constants) need(c.tensor, plan_.tensors.size(), "constant: tensor", false);
    for (int32_t t : {plan_.roles.metrics, plan_.roles.report, plan_.roles.norm_limbs, plan_.roles.loss_scale, plan_.roles.overflows,
                      plan_.roles.eval_metrics, plan_.roles.eval_report})
      need(t, plan_.tensors.size(), "roles");
    for (const PlanStatistics& s : plan_.statistics) {
      need(s.recorded, plan_.tensors.size(), "statistics: recorded", false);
      for (int32_t p : {s.mean, s.variance}) need(p, plan_.parameters.size(), "statistics: parameter", false);
    }
    for (const auto& [parameter, value] : plan_.gradients) {
      need(parameter, plan_.parameters.size(), "gradients: parameter", false);
      need(value, plan_.values.size(), "gradients: value", false);
    }
    for (const SourceNode& n : plan_.source) {
      for (int32_t v : n.inputs) need(v, plan_.values.size(), "source: input");
      for (int32_t v : n.outputs) need(v, plan_.values.size(), "source: output");
    }
    for (const PlanProgram& p : plan_.programs) program(p);
    return good_;
  }

 private:
  void need(int64_t index, size_t count, const std::string& what, bool may_be_none = true) {
    if (index >= (may_be_none ? kNone : 0) && index < static_cast<int64_t>(count)) return;
    bad(fmt::format("{} is {}, there are {}", what, index, count));
  }

  void bad(std::string message) {
    good_ = false;
    context_.fail("format", std::move(message));
  }

  void tensor(const PlanTensor& t) {
    if (t.shape.size() != t.strides.size() || t.shape.size() > kMaxRank)
      bad(fmt::format("tensor {}: shape and strides do not fit together", t.name));
    for (int64_t dim : t.shape)
      if (dim < 0) bad(fmt::format("tensor {}: negative size", t.name));
    need(t.unit, plan_.units.size(), "tensor " + t.name + ": unit", !t.per_rank);
  }

  void unit(const PlanUnit& u, int) {
    need(u.weights_tensor, plan_.tensors.size(), "unit " + u.name + ": weights", false);
    need(u.gradient_tensor, plan_.tensors.size(), "unit " + u.name + ": gradient", !u.trainable);
    for (int32_t t : u.moment_tensors) need(t, plan_.tensors.size(), "unit " + u.name + ": moments", false);
    for (const UnitParameter& p : u.parameters) need(p.parameter, plan_.parameters.size(), "unit " + u.name + ": parameter", false);
  }

  void operand(const Operand& o, const std::string& where) {
    need(o.tensor, plan_.tensors.size(), where + ": tensor");
    need(o.value, plan_.values.size(), where + ": value");
  }

  void program(const PlanProgram& p) {
    for (size_t i = 0; i < p.steps.size(); ++i) {
      const Step& s = p.steps[i];
      const std::string where = fmt::format("{} step {}", program_name(p.program), i);
      for (const Operand& o : s.inputs) operand(o, where);
      for (const Operand& o : s.outputs) operand(o, where);
      operand(s.workspace, where);
      need(s.unit, plan_.units.size(), where + ": unit");
      for (const auto& [output, input] : s.in_place) {
        need(output, s.outputs.size(), where + ": in-place output", false);
        need(input, s.inputs.size(), where + ": in-place input", false);
      }
      for (int32_t wait : s.waits)
        if (wait < 0 || wait >= static_cast<int32_t>(i)) {
          good_ = false;
          context_.fail("wait", p, static_cast<int>(i), fmt::format("waits for step {}, which is not an earlier step", wait));
        }
    }
    for (const Operand& o : p.entry) operand(o, "entry");
    for (const Operand& o : p.exit) operand(o, "exit");
  }

  VerifyContext& context_;
  const Plan& plan_;
  bool good_ = true;
};

void check_tensor(VerifyContext& context, int32_t index) {
  const PlanTensor& t = context.plan.tensors[index];
  const auto [begin, end] = context.ranges[index];
  const std::string name = context.tensor_name(index);
  if (begin < 0 || end > context.plan.arena_bytes[static_cast<int>(t.arena)])
    context.fail("format",
                 fmt::format("{} ends at byte {}, its arena has {}", name, end, context.plan.arena_bytes[static_cast<int>(t.arena)]));
  if (t.offset % dtype_bytes(t.dtype) != 0) context.fail("format", fmt::format("{} is not aligned to its elements", name));
  const bool transient = t.kind == TensorKind::slot || t.kind == TensorKind::reduce_buffer || t.kind == TensorKind::activation ||
                         t.kind == TensorKind::workspace;
  const Arena expected = transient ? Arena::transient : t.kind == TensorKind::input ? Arena::staging : Arena::state;
  const bool full_gradient =
      t.kind == TensorKind::reduce_buffer || t.kind == TensorKind::slot;  // stages with replicated buffers keep them in state
  if (t.arena != expected && !(full_gradient && t.arena == Arena::state) && !context.carried[index])
    context.fail("format", fmt::format("{}: a tensor of this kind lives elsewhere", name));
  if (!t.per_rank) return;
  const PlanUnit& u = context.plan.units[t.unit];
  if (t.dtype != u.dtype || t.shape != Shape{u.shard_elements} || !is_contiguous(t.shape, t.strides))
    context.fail("format", fmt::format("{}: a rank's own part must be one contiguous shard of unit {}", name, u.name));
}

void check_storage(VerifyContext& context, int32_t tensor, const std::string& what, const PlanUnit& u, DType dtype, int64_t elements) {
  const PlanTensor& t = context.plan.tensors[tensor];
  if (t.dtype != dtype || t.shape != Shape{elements} || !is_contiguous(t.shape, t.strides))
    context.fail("format", fmt::format("unit {}: its {} {} must be {} contiguous elements of {}", u.name, what, context.tensor_name(tensor),
                                       elements, dtype_name(dtype)));
  if (t.offset % kArenaAlignment != 0)
    context.fail("format",
                 fmt::format("unit {}: its {} {} is not aligned to {} bytes", u.name, what, context.tensor_name(tensor), kArenaAlignment));
}

void check_unit_layout(VerifyContext& context, int32_t index) {
  const PlanUnit& u = context.plan.units[index];
  int64_t end = 0;
  for (const UnitParameter& part : u.parameters) {
    const PlanParameter& p = context.plan.parameters[part.parameter];
    if (part.offset < end || part.elements < 0 || part.offset % 64 != 0)
      context.fail("format", fmt::format("unit {}: parameter {} overlaps its neighbour or is not at a multiple of 64 elements", u.name,
                                         p.parameter.name));
    if (p.unit != index || p.offset != part.offset || part.elements != elements(p.parameter.shape) || p.parameter.dtype != u.dtype)
      context.fail("format", fmt::format("unit {}: parameter {} states another unit, offset, size or type", u.name, p.parameter.name));
    end = part.offset + part.elements;
  }
  int64_t padded = 0;
  const bool overflow = __builtin_mul_overflow(u.shard_elements, context.plan.header.ranks, &padded);
  const bool shards = u.shard_elements >= 0 && u.shard_elements % 64 == 0 && !overflow && u.padded_elements == padded;
  if (!shards || end > u.padded_elements)
    context.fail("format", fmt::format("unit {}: {} shards of {} elements do not hold its {} elements", u.name, context.plan.header.ranks,
                                       u.shard_elements, end));
}

// Carried exactly where nothing is accumulated over rounds.
void check_gradient_arena(VerifyContext& context, const PlanUnit& u) {
  const PlanTensor& t = context.plan.tensors[u.gradient_tensor];
  const Arena expected = one_round(context.plan) ? Arena::transient : Arena::state;
  if (t.kind != TensorKind::gradients || t.arena != expected || t.per_rank)
    context.fail("format", fmt::format("unit {}: with {} micro-batches on {} ranks its gradient shard {} belongs into the {} arena", u.name,
                                       context.plan.header.micro_batches, context.plan.header.ranks, context.tensor_name(u.gradient_tensor),
                                       arena_name(expected)));
}

void check_unit(VerifyContext& context, int32_t index) {
  const PlanUnit& u = context.plan.units[index];
  check_unit_layout(context, index);
  check_storage(context, u.weights_tensor, "weights", u, u.dtype, u.weights == Placement::sharded ? u.shard_elements : u.padded_elements);
  if (!u.trainable) return;
  check_storage(context, u.gradient_tensor, "gradient shard", u, u.gradient_dtype, u.shard_elements);
  check_gradient_arena(context, u);
  for (size_t i = 0; i < u.moment_tensors.size(); ++i) {
    const int32_t t = u.moment_tensors[i];
    const bool master = i == 0 && has_master(u);
    check_storage(context, t, master ? "master" : "moment", u, u.gradient_dtype,
                  u.optimizer == Placement::sharded ? u.shard_elements : u.padded_elements);
    if (master != (context.plan.tensors[t].kind == TensorKind::master))
      context.fail("format", fmt::format("unit {}: {} is {}the master that its {} weights are rounded from", u.name, context.tensor_name(t),
                                         master ? "not " : "", type_name(u.dtype)));
  }
}

// Named at the end of load: not a view of a constant, but one.
bool is_border(const Plan& plan, int32_t tensor) {
  const PlanProgram* load = find_program(plan, Program::load);
  return load && std::any_of(load->exit.begin(), load->exit.end(), [&](const Operand& o) { return o.tensor == tensor; });
}

void check_constants(VerifyContext& context) {
  std::vector<int> given(context.plan.tensors.size(), 0);
  for (const PlanConstant& c : context.plan.constants) {
    const auto [begin, end] = context.ranges[c.tensor];
    ++given[c.tensor];
    if (static_cast<int64_t>(c.bytes.size()) != end - begin || context.plan.tensors[c.tensor].kind != TensorKind::constant)
      context.fail("format",
                   fmt::format("constant {}: {} bytes for a tensor of {}", context.tensor_name(c.tensor), c.bytes.size(), end - begin));
  }
  for (size_t t = 0; t < given.size(); ++t) {
    const bool view =
        given[t] == 0 && context.plan.tensors[t].kind == TensorKind::constant && !is_border(context.plan, static_cast<int32_t>(t));
    if (context.plan.tensors[t].kind == TensorKind::constant && given[t] != 1 && !view)
      context.fail("format",
                   fmt::format("constant {}: its bytes are given {} times", context.tensor_name(static_cast<int32_t>(t)), given[t]));
  }
  for (const PlanInput& i : context.plan.inputs) {
    if (++given[i.tensor] != 1)
      context.fail("format", fmt::format("input {}: another input is in {} too", i.name, context.tensor_name(i.tensor)));
    const PlanTensor& t = context.plan.tensors[i.tensor];
    if (t.kind != TensorKind::input || t.dtype != i.dtype || t.shape != i.shape || !is_contiguous(t.shape, t.strides))
      context.fail("format",
                   fmt::format("input {}: its tensor {} has another type, shape or place", i.name, context.tensor_name(i.tensor)));
    if (i.mask && context.plan.header.micro_batches > 0 &&
        (i.dtype != DType::boolean || i.shape != Shape{samples_per_micro_batch(context.plan)}))
      context.fail("format", fmt::format("input {}: a mask has one boolean for each sample of a micro-batch", i.name));
  }
}

}  // namespace

bool verify_indices(VerifyContext& context) { return Indices(context).run(); }

// Gradients of float16 are computed with a loss scale, and nothing else is.
void check_loss_scale(VerifyContext& context) {
  const Plan& plan = context.plan;
  const PlanRoles& r = plan.roles;
  const bool scaled = plan.header.precision == DType::f16 && find_program(plan, Program::update) && !plan.gradients.empty();
  if ((r.loss_scale != kNone) != (r.overflows != kNone) || (r.loss_scale != kNone && !scaled))
    return context.fail("format", "loss scale and overflow counters belong to a plan of float16 gradients, both or none");
  if (r.loss_scale == kNone) return;
  const int64_t parameters = static_cast<int64_t>(plan.parameters.size());
  const auto is = [&](int32_t tensor, DType dtype, const Shape& shape) {
    return tensor != kNone && plan.tensors[tensor].dtype == dtype && plan.tensors[tensor].shape == shape;
  };
  if (!is(r.loss_scale, DType::f32, {}) || !is(r.overflows, DType::i64, {overflow_elements(parameters)}) ||
      !is(r.norm_limbs, DType::i64, {norm_elements(parameters)}))
    context.fail("format", "loss scale, overflow counters or limbs of the norm have another type or shape");
}

void verify_format(VerifyContext& context) {
  const PlanHeader& h = context.plan.header;
  if (h.format != kPlanFormat) context.fail("format", fmt::format("format {} instead of {}", h.format, kPlanFormat));
  if (h.ranks < 1 || h.micro_batches < 1 || h.threads < 1) context.fail("format", "ranks, micro-batches and threads must be positive");
  if (h.reduce == ReduceMode::fast && h.device != DeviceKind::cuda)
    context.fail("format", fmt::format("reductions are fast and the device is {}: they are on cuda alone", device_kind_name(h.device)));
  for (size_t i = 0; i < context.plan.tensors.size(); ++i) check_tensor(context, static_cast<int32_t>(i));
  for (size_t i = 0; i < context.plan.units.size(); ++i) check_unit(context, static_cast<int32_t>(i));
  check_constants(context);
  check_loss_scale(context);
  verify_statistics_layout(context);
}

}  // namespace zeroplan
