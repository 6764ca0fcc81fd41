// Steps that the host carries out: weights in, weights out.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/exec/core.h"

namespace zeroplan {
namespace {

constexpr int64_t kBlock = 1 << 16;  // elements that pass through the host at once

void poison(Rank& rank, std::byte* at, int64_t count, DType dtype) {
  HostTensor nan(dtype, {count});
  for (int64_t i = 0; i < count; ++i) nan.set(i, std::numeric_limits<double>::quiet_NaN());
  rank.write(at, nan.data(), nan.bytes());
}

// As the file has them, in wide_dtype of the unit's.
HostTensor read_block(Core& core, const PlanUnit& unit, int parameter, int64_t first, int64_t count) {
  HostTensor block(wide_dtype(unit.dtype), {count});
  std::lock_guard lock(core.read_mutex);
  core.read_weights(parameter, first, count, block.mutable_data());
  return block;
}

// Shard or whole buffer of the weights or their master: elements [first, first + count) of the unit.
void load_weights(Rank& rank, const PlanUnit& unit, int32_t state) {
  Core& core = *rank.core;
  const PlanTensor& tensor = rank.plan->tensors[state];
  const int64_t count = elements(tensor.shape), width = dtype_bytes(tensor.dtype);
  const bool shard = weight_copy(unit, tensor.dtype).placement == Placement::sharded;
  const int64_t first = shard ? rank.index * unit.shard_elements : 0;
  std::byte* at = rank.address(tensor);
  rank.zero(state);
  if (core.options.poison_padding) poison(rank, at, count, tensor.dtype);
  for (const UnitParameter& p : unit.parameters) {
    const int64_t low = std::max(first, p.offset), high = std::min(first + count, p.offset + p.elements);
    for (int64_t begin = low; begin < high; begin += kBlock) {
      const int64_t n = std::min(kBlock, high - begin);
      const HostTensor block = read_block(core, unit, p.parameter, begin - p.offset, n).cast(tensor.dtype);
      rank.write(at + (begin - first) * width, block.data(), n * width);
    }
  }
}

void load_unit(PreparedStep& s) {
  Rank& rank = *s.rank;
  const PlanUnit& unit = rank.plan->units[s.step->unit];
  for (const Operand& o : s.step->outputs) {
    const bool weights = o.tensor != kNone && (o.tensor == unit.weights_tensor || o.tensor == unit_weights(unit, unit.gradient_dtype));
    if (weights)
      load_weights(rank, unit, o.tensor);
    else
      rank.zero(o.tensor);
  }
}

void export_unit(PreparedStep& s) {
  Rank& rank = *s.rank;
  Core& core = *rank.core;
  if (rank.index != 0 || core.take_parameter == nullptr) return;
  const TensorView& whole = s.inputs[0];
  const int64_t width = dtype_bytes(whole.dtype);
  const PlanUnit& unit = rank.plan->units[s.step->unit];
  for (const UnitParameter& p : unit.parameters) {
    HostTensor values(whole.dtype, {p.elements});
    if (is_half(whole.dtype))  // not trained: the file has what was rounded for the model
      values = read_block(core, unit, p.parameter, 0, p.elements);
    else
      rank.read(whole.as<std::byte>() + p.offset * width, values.mutable_data(), p.elements * width);
    (*core.take_parameter)(p.parameter, values.data());
  }
}

}  // namespace

void run_host_step(PreparedStep& s) {
  if (s.step->op == OpKind::load_unit) return load_unit(s);
  if (s.step->op == OpKind::export_unit) return export_unit(s);
  throw Error("the host does not carry out this op");
}

void load_constants(Rank& rank) {
  for (const PlanConstant& constant : rank.plan->constants) {
    const PlanTensor& tensor = rank.plan->tensors[constant.tensor];
    if (static_cast<int64_t>(constant.bytes.size()) != tensor_span_bytes(tensor))
      throw Error(fmt::format("constant {} has {} bytes, its tensor {}; the plan is damaged, compile it again", tensor.name,
                              constant.bytes.size(), tensor_span_bytes(tensor)));
    rank.write(rank.address(tensor), constant.bytes.data(), static_cast<int64_t>(constant.bytes.size()));
  }
}

}  // namespace zeroplan
