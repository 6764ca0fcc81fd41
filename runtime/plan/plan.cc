#include "runtime/plan/plan.h"

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"

namespace zeroplan {

const PlanProgram* find_program(const Plan& plan, Program program) {
  for (const PlanProgram& p : plan.programs)
    if (p.program == program) return &p;
  return nullptr;
}

std::vector<int32_t> carried_tensors(const Plan& plan) {
  std::vector<int32_t> tensors;
  for (const PlanUnit& u : plan.units)
    if (u.trainable && u.gradient_tensor != kNone && plan.tensors[u.gradient_tensor].arena == Arena::transient)
      tensors.push_back(u.gradient_tensor);
  return tensors;
}

namespace {

// Batch statistics over all ranks: each of them needs a micro-batch.
bool sums_over_ranks(const PlanProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const Step& s) { return s.kind == StepKind::all_reduce; });
}

}  // namespace

// Running statistics are folded over all micro-batches of a window.
bool takes_part_batches(const Plan& plan) {
  const PlanProgram* micro_step = find_program(plan, Program::micro_step);
  if (!plan.statistics.empty() || (micro_step != nullptr && sums_over_ranks(*micro_step))) return false;
  return samples_per_micro_batch(plan) == 1 ||
         std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const PlanInput& input) { return input.mask; });
}

int64_t tensor_span_bytes(const PlanTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return 0;
    last = checked_add(last, checked_mul(tensor.shape[i] - 1, tensor.strides[i]));
  }
  return checked_mul(checked_add(last, 1), dtype_bytes(tensor.dtype));
}

}  // namespace zeroplan
