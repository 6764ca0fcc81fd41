#include "runtime/plan/reserve.h"

#include <algorithm>

#include "base/checked.h"

namespace zeroplan {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kProcess = 40 * kMiB;        // code and data of libraries, the plan, a compilation's heap
constexpr int64_t kProcessPerStep = 8192;      // bytes: plan, graph and verifier
constexpr int64_t kRank = 2 * kMiB;            // stacks of its threads
constexpr int64_t kRankPerStep = 2048;         // bytes: prepared operands, events
constexpr int64_t kColumns = 4096, kDepth = 384;  // what the matrix kernel lets a product pack at a time
constexpr int64_t kPanel = 1 * kMiB;
constexpr int64_t kDoublePacking = 32 * kMiB;  // fp64 products: a fixed buffer per thread

// A product packs one operand by blocks of columns and rows, the other in panels; freed buffers of other sizes stay beside it.
int64_t packing_bytes(const Plan& plan, const Step& step) {
  // A plan may be asked before it is verified.
  if (step.inputs.empty() || step.outputs.empty() || step.inputs[0].tensor == kNone || step.outputs[0].tensor == kNone) return 0;
  const PlanTensor& a = plan.tensors[step.inputs[0].tensor];
  const PlanTensor& y = plan.tensors[step.outputs[0].tensor];
  if (y.dtype == DType::f64) return kDoublePacking;
  const int64_t depth = a.shape.empty() ? 1 : a.shape.back(), columns = y.shape.empty() ? 1 : y.shape.back();
  return 2 * (std::min(columns, kColumns) * std::min(depth, kDepth) * dtype_bytes(y.dtype) + kPanel);
}

}  // namespace

int64_t reserve_bytes(const Plan& plan) {
  int64_t packing = 0, steps = 0;
  for (const PlanProgram& program : plan.programs) {
    steps += static_cast<int64_t>(program.steps.size());
    for (const Step& step : program.steps)
      if (step.op == OpKind::matmul) packing = std::max(packing, packing_bytes(plan, step));
  }
  const int64_t process = kProcess + steps * kProcessPerStep;
  return ceil_div(process, plan.header.ranks) + kRank + steps * kRankPerStep + packing * plan.header.threads;
}

}  // namespace zeroplan
