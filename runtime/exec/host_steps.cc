// Steps that the host carries out: weights in, weights out.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/exec/core.h"

namespace zeroplan {
namespace {

void poison(std::byte* at, int64_t count, DType dtype) {
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) std::fill_n(reinterpret_cast<T*>(at), count, std::numeric_limits<T>::quiet_NaN());
  });
}

// Shard or whole buffer: elements [first, first + count) of the unit.
void load_weights(Rank& rank, const PlanUnit& unit) {
  Core& core = *rank.core;
  const PlanTensor& tensor = rank.plan->tensors[unit.weights_tensor];
  const int64_t count = elements(tensor.shape), width = dtype_bytes(tensor.dtype);
  const bool shard = unit.weights == Placement::sharded;
  const int64_t first = shard ? rank.index * unit.shard_elements : 0;
  std::byte* at = rank.address(tensor);
  std::memset(at, 0, static_cast<size_t>(count * width));
  if (core.options.poison_padding) poison(at, count, tensor.dtype);
  for (const UnitParameter& p : unit.parameters) {
    const int64_t low = std::max(first, p.offset), high = std::min(first + count, p.offset + p.elements);
    if (low >= high) continue;
    std::lock_guard lock(core.read_mutex);
    core.read_weights(p.parameter, low - p.offset, high - low, at + (low - first) * width);
  }
}

void load_unit(PreparedStep& s) {
  Rank& rank = *s.rank;
  const PlanUnit& unit = rank.plan->units[s.step->unit];
  for (const Operand& o : s.step->outputs) {
    if (o.tensor == kNone) continue;
    const PlanTensor& tensor = rank.plan->tensors[o.tensor];
    if (o.tensor == unit.weights_tensor)
      load_weights(rank, unit);
    else
      std::memset(rank.address(tensor), 0, static_cast<size_t>(tensor_span_bytes(tensor)));
  }
}

void export_unit(PreparedStep& s) {
  const Core& core = *s.rank->core;
  if (s.rank->index != 0 || core.take_parameter == nullptr) return;
  const TensorView& whole = s.inputs[0];
  const int64_t width = dtype_bytes(whole.dtype);
  for (const UnitParameter& p : s.rank->plan->units[s.step->unit].parameters)
    (*core.take_parameter)(p.parameter, whole.as<std::byte>() + p.offset * width);
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
    std::memcpy(rank.address(tensor), constant.bytes.data(), constant.bytes.size());
  }
}

}  // namespace zeroplan
