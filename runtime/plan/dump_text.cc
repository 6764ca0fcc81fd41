#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/checked.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/type_name.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"

namespace zeroplan {
namespace {

const char* placement_name(Placement placement) { return placement == Placement::sharded ? "sharded" : "replicated"; }

// A ring leaves a node over one link; all-to-all, each of its ranks sends to all ranks of the others.
void put_reductions(std::string& out, const Plan& plan) {
  const int64_t ranks = plan.header.ranks, part = reduced_part_bytes(plan);
  if (plan.header.device != DeviceKind::cuda || ranks == 1) return;
  out += fmt::format("reduce {}\n", reduce_mode_name(plan.header.reduce));
  for (const int64_t node : {1, 2, 4, 8}) {
    if (node >= ranks || ranks % node != 0) continue;
    out += fmt::format("reduced bytes that leave a node of {} in a step: {} all-to-all (ordered), {} in a ring (fast)\n",
                       counted(node, "rank"), checked_mul(node * (ranks - node), part), checked_mul(ranks - 1, part));
  }
}

void put_header(std::string& out, const Plan& plan) {
  const PlanHeader& h = plan.header;
  out += fmt::format("plan format {}  digest {}  by zeroplan {}\n", h.format, h.digest, h.tool_version);
  out += fmt::format("model {}  digest {}\n", h.model_path, h.model_digest);
  out += fmt::format("ranks {}  batch {}  micro-batches {}  stage {}  threads {}  precision {}  device {}\n", h.ranks, h.batch,
                     h.micro_batches, h.stage, h.threads, type_name(h.precision), device_kind_name(h.device));
  out += fmt::format("optimizer {}  momentum {}  prefetch {}  max live units {}\n", h.optimizer, h.momentum, h.prefetch, h.max_live_units);
  put_reductions(out, plan);
  out += fmt::format("loss {}\ncosts {}\n", h.loss, h.cost_source);
  for (const auto& [name, value] : h.options) out += fmt::format("option {} = {}\n", name, value);
  for (const std::string& line : plan.report_lines) out += fmt::format("note {}\n", line);
}

// The bytes of [begin, begin + bytes) of the whole buffer that lie in the shard of one rank, counted within the buffer.
void put_rank_range(std::string& out, int rank, int64_t begin, int64_t bytes, int64_t shard_bytes) {
  const int64_t low = std::max(begin, rank * shard_bytes), high = std::min(begin + bytes, (rank + 1) * shard_bytes);
  if (low < high) out += fmt::format(" r{}[{},{})", rank, low, high);
}

// What is kept, what goes over the wire, and what sums are made in.
void put_types(std::string& out, const PlanUnit& u) {
  out += fmt::format("  weights kept {}{}, gathered {}", type_name(u.dtype),
                     has_master(u) ? fmt::format(" beside a {} master", type_name(u.gradient_dtype)) : "", type_name(u.dtype));
  if (u.trainable)
    out += fmt::format("; gradients reduced {}, added up and kept {}; moments {}", type_name(u.reduce_dtype), type_name(u.gradient_dtype),
                       type_name(u.gradient_dtype));
}

void put_unit(std::string& out, const Plan& plan, size_t index, int rank) {
  const PlanUnit& u = plan.units[index];
  const int64_t width = dtype_bytes(u.dtype);
  out += fmt::format("unit {} {}  {}, gradients {}{}  padded {} ({} bytes)  shard {} ({} bytes)", index, u.name, type_name(u.dtype),
                     type_name(u.gradient_dtype), u.trainable ? "" : "  frozen", u.padded_elements, u.padded_elements * width,
                     u.shard_elements, u.shard_elements * width);
  put_types(out, u);
  out += fmt::format("  weights {}  gradients {}  optimizer {}  slot class {}\n", placement_name(u.weights), placement_name(u.gradients),
                     placement_name(u.optimizer), u.slot_class);
  for (const UnitParameter& p : u.parameters) {
    const Parameter& parameter = plan.parameters[p.parameter].parameter;
    const int64_t begin = p.offset * width, bytes = p.elements * width;
    out += fmt::format("  {} {}  bytes [{},{}) ", parameter.name, to_string(parameter.shape), begin, begin + bytes);
    const int64_t shard = std::max<int64_t>(u.shard_elements * width, 1);
    const int first = static_cast<int>(begin / shard), last = static_cast<int>(std::max(begin, begin + bytes - 1) / shard);
    for (int r = rank < 0 ? first : rank; r <= (rank < 0 ? std::min(last, plan.header.ranks - 1) : rank); ++r)
      put_rank_range(out, r, begin, bytes, shard);
    out += '\n';
  }
}

// Each tensor's type where it lies; what a collective moves it as; and what is added up in, in the kernels that write it or the reduction
// that takes it in.
void put_tensors(std::string& out, const Plan& plan) {
  std::vector<std::string> wires(plan.tensors.size()), sums(plan.tensors.size());
  const auto note = [&](std::vector<std::string>& notes, const Operand& o, const char* what, DType dtype) {
    if (o.tensor != kNone && plan.tensors[o.tensor].kind != TensorKind::metrics)
      notes[o.tensor] = fmt::format("  {} {}", what, type_name(dtype));
  };
  const auto type_of = [&](const Operand& o) { return o.tensor == kNone ? DType::u8 : plan.tensors[o.tensor].dtype; };
  for (const PlanProgram& p : plan.programs)
    for (const Step& step : p.steps) {
      const bool scatter = step.kind == StepKind::reduce_scatter, gather = step.kind == StepKind::all_gather;
      const size_t moved = scatter ? 1 : 0;
      if ((scatter || gather) && step.inputs.size() > moved) note(wires, step.inputs[moved], "on the wire", type_of(step.inputs[moved]));
      if (scatter && step.inputs.size() > moved) note(sums, step.inputs[moved], "added up in", wide_dtype(type_of(step.inputs[moved])));
      for (const Operand& o : step.outputs)
        if (step.kind == StepKind::kernel && is_floating(type_of(o))) note(sums, o, "added up in", wide_dtype(type_of(o)));
    }
  out += "tensors (kind, type in storage, on the wire, in accumulation)\n";
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    if (t.kind != TensorKind::workspace)
      out += fmt::format("  {} {} {}{}{}{}\n", t.name, tensor_kind_name(t.kind), type_name(t.dtype), to_string(t.shape), wires[i], sums[i]);
  }
}

void put_histogram(std::string& out, const Plan& plan) {
  std::map<int, std::pair<int, int64_t>> classes;  // log2 of bytes
  for (const PlanUnit& u : plan.units) {
    const int64_t bytes = std::max<int64_t>(1, u.padded_elements * dtype_bytes(u.dtype));
    auto& [count, sum] = classes[63 - __builtin_clzll(static_cast<uint64_t>(bytes))];
    ++count;
    sum += bytes;
  }
  out += "unit sizes (gathered bytes)\n";
  for (const auto& [log, entry] : classes)
    out += fmt::format("  [{}, {})  {} unit{}, {} bytes\n", int64_t{1} << log, int64_t{2} << log, entry.first, entry.first == 1 ? "" : "s",
                       entry.second);
}

int64_t collective_bytes(const Plan& plan, const Step& step) {
  const bool scatter = step.kind == StepKind::reduce_scatter;
  const std::vector<Operand>& operands = scatter ? step.inputs : step.outputs;
  const size_t whole = scatter ? 1 : 0;
  if (operands.size() <= whole || operands[whole].tensor == kNone) return 0;  // a broken plan, which can be printed all the same
  const auto [begin, end] = tensor_range(plan, plan.tensors[operands[whole].tensor], 0);
  return end - begin;
}

void put_collectives(std::string& out, const Plan& plan) {
  out += "collectives (number, bytes of the whole buffers)\n";
  for (const PlanProgram& p : plan.programs) {
    std::map<StepKind, std::pair<int, int64_t>> sums;
    for (const Step& step : p.steps) {
      if (step.kind != StepKind::all_gather && step.kind != StepKind::reduce_scatter && step.kind != StepKind::all_reduce) continue;
      ++sums[step.kind].first;
      sums[step.kind].second += collective_bytes(plan, step);
    }
    out += fmt::format("  {}:", program_name(p.program));
    for (const auto& [kind, sum] : sums) out += fmt::format("  {} {} × = {} bytes", step_kind_name(kind), sum.first, sum.second);
    out += sums.empty() ? "  none\n" : "\n";
  }
}

std::string operands(const Plan& plan, const std::vector<Operand>& list) {
  std::vector<std::string> parts;
  for (const Operand& o : list) parts.push_back(describe_operand(plan, o));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void put_carried(std::string& out, const Plan& plan, const char* what, const std::vector<Operand>& border) {
  std::vector<Operand> carried;
  for (const Operand& o : border)
    if (o.tensor != kNone && plan.tensors[o.tensor].arena == Arena::transient) carried.push_back(o);
  if (!carried.empty()) out += fmt::format("  {}: {}\n", what, operands(plan, carried));
}

void put_step(std::string& out, const Plan& plan, const Step& step, size_t index) {
  out += fmt::format("{:>6} {:<7} {}{}  ({}) -> ({})", index, stream_name(step.stream), describe_step(plan, step), step.records ? " *" : "",
                     operands(plan, step.inputs), operands(plan, step.outputs));
  if (!step.waits.empty()) out += fmt::format("  waits {}", fmt::join(step.waits, " "));
  if (step.workspace.tensor != kNone) out += "  workspace " + describe_operand(plan, step.workspace);
  for (const auto& [output, input] : step.in_place) out += fmt::format("  in place {}<-{}", output, input);
  if (step.predicted_us > 0) out += fmt::format("  {:.2f} us", step.predicted_us);
  if (!step.origin.empty()) out += "  from " + step.origin;
  if (!step.reason.empty()) out += "  because " + step.reason;
  out += '\n';
}

}  // namespace

std::string dump_text(const Plan& plan, int rank) {
  if (rank >= plan.header.ranks)
    throw Error(fmt::format("rank {} does not exist: the plan has ranks 0 to {}", rank, plan.header.ranks - 1));
  std::string out;
  put_header(out, plan);
  for (size_t i = 0; i < plan.units.size(); ++i) put_unit(out, plan, i, rank);
  put_histogram(out, plan);
  for (const PlanInput& input : plan.inputs)
    out += fmt::format("input {} {} {}  sample axis {}  {}{}\n", input.name, type_name(input.dtype), to_string(input.shape),
                       input.sample_axis, describe_operand(plan, {input.tensor, kNone}), input.mask ? "  mask of the samples" : "");
  for (const PlanOutput& output : plan.outputs)
    out += fmt::format("output {}  sample axis {}  {}\n", output.name, output.sample_axis, describe_operand(plan, {output.tensor, kNone}));
  put_tensors(out, plan);
  out += memory_table(plan);
  put_collectives(out, plan);
  for (const PlanProgram& p : plan.programs) {
    out += fmt::format("program {}  {} steps  predicted {:.1f} us  live bytes at most {}\n", program_name(p.program), p.steps.size(),
                       p.predicted_us, plan.transient_lower_bound[static_cast<size_t>(p.program)]);
    put_carried(out, plan, "carried from micro_step", p.entry);
    put_carried(out, plan, "carried to update", p.exit);
    for (size_t i = 0; i < p.steps.size(); ++i) put_step(out, plan, p.steps[i], i);
  }
  return out;
}

}  // namespace zeroplan
