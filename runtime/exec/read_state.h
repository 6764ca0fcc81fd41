#pragma once
// What the host reads from the state arenas between jobs. Only runtime/exec includes this.
#include "runtime/exec/core.h"

namespace zeroplan {

struct WindowLoss {
  double sum = 0, weight = 0;
};

// Folds the loss sums and weights of the first `micro_batches` of a window in their order; each stands with the rank that ran it.
WindowLoss read_metrics(Core& core, int32_t tensor, int64_t micro_batches);
void add_metrics(Core& core, int32_t tensor, int64_t micro_batches, WindowLoss& total);
// Is the loss of the program's fold_metrics divided by the weight?
bool divides_by_weight(const Plan& plan, Program program);
HostTensor read_parameter(Core& core, int parameter);
HostTensor read_gradient(Core& core, int parameter);  // throws Error for a frozen parameter

}  // namespace zeroplan
