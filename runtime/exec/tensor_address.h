#pragma once
// Where a tensor of the plan lies for a rank.
#include "kernels/kernel.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// Bytes from the beginning of its arena.
inline int64_t offset_for_rank(const Plan& plan, const PlanTensor& tensor, int rank) {
  const int64_t shards = tensor.per_rank ? rank * plan.units[tensor.unit].shard_elements : 0;
  return tensor.offset + shards * dtype_bytes(tensor.dtype);
}

inline TensorView view_at(std::byte* address, const PlanTensor& t) {
  return make_view(address, t.dtype, t.shape, t.strides.size() == t.shape.size() ? t.strides : contiguous_strides(t.shape));
}

}  // namespace zeroplan
