#include "runtime/plan/reserve.h"

#include <algorithm>

#include "base/checked.h"
#include "base/tensor_view.h"

namespace zeroplan {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kCode = 28 * kMiB;
constexpr int64_t kHeap = 12 * kMiB;
constexpr int64_t kHeapPerStep = 8192;
constexpr int64_t kMpi = 12 * kMiB, kMpiPeer = kMiB / 2;  // Open MPI's code, heap and shared pages: 7 MiB, and 0.3 for each rank
constexpr int64_t kMostMessages = 8 * kMiB, kMostOnGpu = 64 * kMiB, kCacheLine = 64;
constexpr int64_t kConstantCopies = 4;  // file, graph, its clone, plan
constexpr int64_t kThread = kMiB / 2;
constexpr int64_t kPreparedStep = 2048;                              // without its views
constexpr int64_t kColumns = 4096, kDepth = 384, kPanel = 1 * kMiB;  // of a float product: what is packed at a time, and the other operand
constexpr int64_t kDoubleBuffer = 32 * kMiB, kDoublePanel = 2 * kMiB;  // of a double product: OpenBLAS's buffer, and its rows

// A product packs one operand by blocks of columns and rows, the other in panels; freed buffers of other sizes stay beside it.
int64_t packing_bytes(const Plan& plan, const Step& step) {
  // A plan may be asked before it is verified.
  if (step.inputs.empty() || step.outputs.empty() || step.inputs[0].tensor == kNone || step.outputs[0].tensor == kNone) return 0;
  const PlanTensor& a = plan.tensors[step.inputs[0].tensor];
  const PlanTensor& y = plan.tensors[step.outputs[0].tensor];
  const int64_t depth = std::min(a.shape.empty() ? 1 : a.shape.back(), kDepth), columns = y.shape.empty() ? 1 : y.shape.back();
  if (y.dtype == DType::f64) return std::min(kDoubleBuffer, 2 * (std::min(columns, kDoubleBuffer) * depth * 8 + kDoublePanel));
  return 2 * (std::min(columns, kColumns) * depth * dtype_bytes(wide_dtype(y.dtype)) + kPanel);
}

// Bytes that a reduction has each rank send to each other: elements of the accumulator's shard, in the type that they travel in.
int64_t part_bytes(const Plan& plan, const Step& step) {
  const bool scatter = step.kind == StepKind::reduce_scatter;
  if (!scatter && step.kind != StepKind::all_reduce) return 0;
  const auto& counted = scatter ? step.outputs : step.inputs;
  if (counted.empty() || counted[0].tensor == kNone || step.inputs.size() < (scatter ? 2 : 1)) return 0;
  const Operand& sent = step.inputs[scatter ? 1 : 0];
  if (sent.tensor == kNone) return 0;
  const int64_t count = elements(plan.tensors[counted[0].tensor].shape);
  return checked_mul(scatter ? count : ceil_div(count, plan.header.ranks), dtype_bytes(plan.tensors[sent.tensor].dtype));
}

int64_t largest_part(const Plan& plan, StreamKind stream) {
  int64_t largest = 1;
  for (const PlanProgram& program : plan.programs)
    for (const Step& step : program.steps)
      if (step.stream == stream) largest = std::max(largest, part_bytes(plan, step));
  return round_up(largest, kCacheLine);
}

int64_t constant_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanTensor& tensor : plan.tensors)
    if (tensor.kind == TensorKind::constant) bytes = checked_add(bytes, checked_mul(elements(tensor.shape), dtype_bytes(tensor.dtype)));
  return bytes;
}

}  // namespace

int64_t Reserve::per_rank(int ranks_of_a_process) const {
  return ceil_div(code + heap, ranks_of_a_process) + threads + steps + messages + packing;
}

int64_t message_slot_bytes(const Plan& plan, StreamKind stream) {
  const int64_t most = (plan.header.device == DeviceKind::cuda ? kMostOnGpu : kMostMessages) / plan.header.ranks / kCacheLine * kCacheLine;
  return std::clamp(largest_part(plan, stream), kCacheLine, std::max(most, kCacheLine));
}

int64_t receive_bytes(const Plan& plan, StreamKind stream) {
  const int64_t slots = plan.header.ranks * message_slot_bytes(plan, stream);
  return plan.header.reduce == ReduceMode::fast ? std::max(slots, largest_part(plan, stream)) : slots;
}

int64_t reduced_part_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanProgram& program : plan.programs) {
    const bool micro_step = program.program == Program::micro_step;
    if (!micro_step && program.program != Program::update) continue;
    const int64_t times = micro_step ? ceil_div(plan.header.micro_batches, plan.header.ranks) : 1;
    for (const Step& step : program.steps)
      if (step.kind == StepKind::reduce_scatter) bytes = checked_add(bytes, checked_mul(part_bytes(plan, step), times));
  }
  return bytes;
}

Reserve find_reserve(const Plan& plan, Hosting hosting) {
  Reserve reserve;
  int64_t steps = 0;
  for (const PlanProgram& program : plan.programs) {
    steps += static_cast<int64_t>(program.steps.size());
    for (const Step& step : program.steps) {
      reserve.steps += kPreparedStep + static_cast<int64_t>((step.inputs.size() + step.outputs.size()) * sizeof(TensorView));
      if (step.op == OpKind::matmul) reserve.packing = std::max(reserve.packing, packing_bytes(plan, step));
    }
  }
  reserve.code = kCode;
  reserve.heap = kHeap + steps * kHeapPerStep + kConstantCopies * constant_bytes(plan);
  reserve.threads = (1 + kStreams + plan.header.threads) * kThread;
  reserve.packing *= plan.header.threads;
  if (plan.header.device == DeviceKind::cuda && plan.header.ranks > 1)
    for (const StreamKind stream : {StreamKind::gather, StreamKind::reduce}) reserve.device += receive_bytes(plan, stream);
  if (hosting == Hosting::processes) {
    reserve.messages = kMpi + plan.header.ranks * kMpiPeer;
    if (plan.header.device == DeviceKind::cuda) return reserve;  // MPI starts the job and compares it: collectives are NCCL's
    for (const StreamKind stream : {StreamKind::gather, StreamKind::reduce})
      reserve.messages += plan.header.ranks * message_slot_bytes(plan, stream);
  }
  return reserve;
}

}  // namespace zeroplan
