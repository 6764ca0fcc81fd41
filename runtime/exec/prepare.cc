// Everything that the loop would otherwise have to look up.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/op_def.h"
#include "runtime/exec/core.h"
#include "runtime/exec/tensor_address.h"

namespace zeroplan {
namespace {

constexpr size_t kTraceEvents = 1 << 16;  // per stream, where one step has fewer
constexpr int64_t kExtentsAt = 128;       // in Rank::tables; scalars come first
static_assert(sizeof(RunScalars) <= kExtentsAt);

void allocate(Rank& rank, Device& device, bool canaries) {
  for (int a = 0; a < kArenas; ++a) {
    rank.arenas[a].bytes = rank.plan->arena_bytes[a];
    rank.arenas[a].memory = device.alloc(rank.arenas[a].bytes + (canaries ? kCanaryBytes : 0));
  }
  int64_t extents = 0;
  for (const auto& unit : rank.core->extents) extents += static_cast<int64_t>(unit.size() * sizeof(UnitExtent));
  rank.tables = device.alloc(kExtentsAt + extents);
}

// Which part of the unit's flat buffer operand 0 is.
void set_covered(const Rank& rank, const Step& step, UnitArgs& args) {
  const PlanUnit& unit = rank.plan->units[step.unit];
  args.first = 0;
  args.covered = unit.padded_elements;
  if ((step.op != OpKind::optimizer_update && step.op != OpKind::grad_norm) || step.inputs.empty()) return;
  if (elements(rank.plan->tensors[step.inputs[0].tensor].shape) != unit.shard_elements) return;
  args.first = rank.index * unit.shard_elements;
  args.covered = unit.shard_elements;
}

int64_t extents_before(const Rank& rank, int32_t unit) {
  int64_t before = 0;
  for (int32_t u = 0; u < unit; ++u) before += static_cast<int64_t>(rank.core->extents[u].size());
  return before;
}

const UnitExtent* device_extents(const Rank& rank, int32_t unit) {
  const auto* first = reinterpret_cast<const UnitExtent*>(static_cast<std::byte*>(rank.tables->data()) + kExtentsAt);
  return first + extents_before(rank, unit);
}

void prepare_kernel(Rank& rank, PreparedStep& out, Kernel (*kernel_of)(OpKind)) {
  const Step& step = *out.step;
  for (const Operand& o : step.inputs) out.inputs.push_back(rank.view(o.tensor));
  for (const Operand& o : step.outputs) out.outputs.push_back(rank.view(o.tensor));
  if (step.unit != kNone) {
    const auto& extents = rank.core->extents[step.unit];
    out.unit = {.parameters = device_extents(rank, step.unit),
                .count = static_cast<int>(extents.size()),
                .padded_elements = rank.plan->units[step.unit].padded_elements};
    set_covered(rank, step, out.unit);
  }
  if (step.kind != StepKind::kernel && step.kind != StepKind::copy) return;
  if (step.op == OpKind::elementwise) out.chain = decode_elementwise(step.attributes);
  out.kernel = kernel_of(step.op);
  if (out.kernel == nullptr) throw Error("this device has no kernel for the op", place_of(rank, step, out.index, out.program));
}

void prepare_collective(Rank& rank, PreparedStep& out) {
  const Step& step = *out.step;
  const bool scatter = step.kind == StepKind::reduce_scatter;
  const PlanTensor& first = rank.plan->tensors[(scatter ? step.outputs : step.inputs)[0].tensor];
  out.dtype = first.dtype;
  out.count = elements(first.shape);
  out.from = out.to = rank.address(first);
  if (step.kind == StepKind::all_gather) {
    out.to = rank.view(step.outputs[0].tensor).data;
    out.count *= dtype_bytes(first.dtype);
  } else if (scatter) {
    out.from = rank.view(step.inputs[1].tensor).data;
    out.dtype = rank.plan->tensors[step.inputs[1].tensor].dtype;  // folded into wide_dtype of it
    out.fold = step.inputs[0].tensor == kNone ? Fold::from_zero : Fold::onto;
  }
}

bool is_collective(StepKind kind) {
  return kind == StepKind::all_gather || kind == StepKind::reduce_scatter || kind == StepKind::all_reduce;
}

void prepare_program(Rank& rank, Device& device, Kernel (*kernel_of)(OpKind), const PlanProgram& program) {
  auto& steps = rank.programs[static_cast<int>(program.program)];
  steps.resize(program.steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    PreparedStep& out = steps[i];
    const Step& step = program.steps[i];
    out.step = &step;
    out.index = static_cast<int>(i);
    out.program = program.program;
    out.rank = &rank;
    out.lane = &rank.lanes[static_cast<int>(step.stream)];
    for (int32_t w : step.waits) {
      check(w >= 0 && w < out.index && steps[w].records != nullptr, "a step waits for an earlier step that records");
      out.waits.push_back(steps[w].records);
    }
    if (step.records) out.records = rank.events.emplace_back(device.new_event()).get();
    if (is_collective(step.kind))
      prepare_collective(rank, out);
    else if (step.kind != StepKind::free)
      prepare_kernel(rank, out, kernel_of);
  }
}

// Runs of at least two kernels of the compute stream with waits at the first alone and a record at the last alone.
void find_segments(Rank& rank, int program) {
  auto& steps = rank.programs[program];
  auto& segments = rank.segments[program];
  for (size_t i = 0; i < steps.size();) {
    size_t end = i;
    const auto joins = [&](const PreparedStep& s) { return s.kernel != nullptr && (end == i || s.waits.empty()); };
    while (end < steps.size() && joins(steps[end]))
      if (steps[end++].records != nullptr) break;
    if (end > i + 1) segments.push_back({static_cast<int>(i), static_cast<int>(end) - 1, nullptr});
    i = std::max(end, i + 1);
  }
  for (Segment& segment : segments) steps[segment.first].segment = &segment;
}

// Kernel arguments point into the steps: only once those have their final place.
void link_arguments(Rank& rank, PreparedStep& s) {
  s.args.inputs = s.inputs.data();
  s.args.input_count = static_cast<int>(s.inputs.size());
  s.args.outputs = s.outputs.data();
  s.args.output_count = static_cast<int>(s.outputs.size());
  if (s.step->workspace.tensor != kNone) {
    const PlanTensor& w = rank.plan->tensors[s.step->workspace.tensor];
    s.args.workspace = rank.address(w);
    s.args.workspace_bytes = tensor_span_bytes(w);
  }
  s.args.attributes = &s.step->attributes;
  s.args.chain = &s.chain;
  s.args.unit = s.step->unit == kNone ? nullptr : &s.unit;
  s.args.scalars = static_cast<const RunScalars*>(rank.tables->data());
  s.args.threads = rank.plan->header.threads;
  s.args.context = rank.context.get();
  s.args.place = s.index;
}

// Events of the steps that are asked for, of one at least.
size_t trace_events(const Rank& rank, int stream) {
  const Plan& plan = *rank.plan;
  const int64_t steps = std::max<int64_t>(1, rank.core->options.trace_steps),
                rounds = ceil_div(plan.header.micro_batches, plan.header.ranks);
  size_t events = 0;
  for (const PlanProgram& program : plan.programs) {
    const int64_t times = program.program == Program::micro_step ? rounds * steps : program.program == Program::update ? steps : 1;
    const auto on_stream = [&](const Step& step) { return static_cast<int>(step.stream) == stream; };
    events += static_cast<size_t>(times) * static_cast<size_t>(std::count_if(program.steps.begin(), program.steps.end(), on_stream));
  }
  return std::max(events, kTraceEvents);
}

void prepare_lanes(Rank& rank, const RankBackend& own) {
  rank.pinned = rank.device->alloc_host(kStreams * static_cast<int64_t>(sizeof(uint32_t)) +
                                        (rank.host ? 0 : kArenaAlignment + 2 * rank.arenas[static_cast<int>(Arena::staging)].bytes));
  rank.lanes[static_cast<int>(StreamKind::gather)].comm = own.gather.get();
  rank.lanes[static_cast<int>(StreamKind::reduce)].comm = own.reduce.get();
  for (int s = 0; s < kStreams; ++s) {
    Lane& lane = rank.lanes[s];
    lane.stream = rank.device->new_stream(static_cast<StreamKind>(s));
    lane.progress = static_cast<uint32_t*>(rank.pinned->data()) + s;
    *lane.progress = kIdle;
    if (rank.core->options.trace) lane.trace.resize(trace_events(rank, s));
  }
}

// Where the device is not the host, pinned memory repeats the staging arena twice.
void prepare_inputs(Rank& rank) {
  for (const PlanInput& input : rank.plan->inputs) rank.inputs.push_back(rank.view(input.tensor));
  rank.host_inputs.fill(rank.inputs);
  if (rank.host) return;
  std::byte* pinned = static_cast<std::byte*>(rank.pinned->data()) + kArenaAlignment;
  for (auto& place : rank.host_inputs) {
    for (size_t i = 0; i < place.size(); ++i) place[i].data = pinned + rank.plan->tensors[rank.plan->inputs[i].tensor].offset;
    pinned += rank.arenas[static_cast<int>(Arena::staging)].bytes;
  }
}

}  // namespace

std::byte* Rank::address(const PlanTensor& tensor) const {
  return arenas[static_cast<int>(tensor.arena)].data() + offset_for_rank(*plan, tensor, index);
}

TensorView Rank::view(int32_t tensor) const {
  if (tensor == kNone) return {};
  return view_at(address(plan->tensors[tensor]), plan->tensors[tensor]);
}

const PreparedStep* Rank::active(const Lane& lane) const {
  const uint32_t word = std::atomic_ref(*lane.progress).load(std::memory_order_acquire);
  return word == kIdle ? nullptr : &programs[(word >> 24) - 1][word & 0xffffff];
}

void Rank::read(const void* from, void* to, int64_t bytes) { write(to, from, bytes); }

void Rank::write(void* to, const void* from, int64_t bytes) {
  device->use();
  compute().copy(to, from, bytes);
  compute().synchronize();
}

void Rank::zero(int32_t tensor) {
  if (tensor == kNone) return;
  compute().fill(address(plan->tensors[tensor]), 0, tensor_span_bytes(plan->tensors[tensor]));
  compute().synchronize();
}

void Rank::upload_scalars() { compute().copy(tables->data(), &scalars, sizeof scalars); }

void Rank::upload_extents() {
  std::vector<UnitExtent> all;
  for (const auto& extents : core->extents) all.insert(all.end(), extents.begin(), extents.end());
  write(static_cast<std::byte*>(tables->data()) + kExtentsAt, all.data(), static_cast<int64_t>(all.size() * sizeof(UnitExtent)));
}

void prepare_rank(Rank& rank, const RankBackend& own, const Backend& backend) {
  Device& device = *own.device;
  device.use();
  rank.device = &device;
  rank.host = device.properties().host;
  allocate(rank, device, rank.core->options.check_memory);
  for (const Arena arena : {Arena::state, Arena::transient}) {
    const ArenaMemory& memory = rank.arenas[static_cast<int>(arena)];
    for (Communicator* comm : {own.gather.get(), own.reduce.get()})
      if (memory.bytes > 0) rank.shared.push_back(comm->share(memory.data(), memory.bytes));
  }
  prepare_lanes(rank, own);
  if (backend.new_context) rank.context = backend.new_context(rank.compute());
  for (const PlanProgram& program : rank.plan->programs) prepare_program(rank, device, backend.kernel_of, program);
  for (auto& steps : rank.programs)
    for (PreparedStep& s : steps) link_arguments(rank, s);
  if (!rank.host && rank.core->options.cuda_graph && !observed(rank))
    for (int p = 0; p < kPrograms; ++p) find_segments(rank, p);
  prepare_inputs(rank);
  prepare_times(rank);
  rank.upload_extents();
  rank.positions.resize(static_cast<size_t>(samples_per_micro_batch(*rank.plan)));
  for (int32_t t : carried_tensors(*rank.plan)) {
    const PlanTensor& tensor = rank.plan->tensors[t];
    rank.carried.emplace_back(tensor.offset, tensor.offset + tensor_span_bytes(tensor));
  }
  std::sort(rank.carried.begin(), rank.carried.end());
  if (rank.core->options.check_memory) fill_canaries(rank);
}

}  // namespace zeroplan
