#pragma once
// What the host reads from the state arenas between jobs. Only runtime/exec includes this.
#include "runtime/exec/core.h"

namespace zeroplan {

struct WindowLoss {
  double sum = 0, weight = 0;
};

// Folds the loss sums and weights of a window that no update has folded, in the order of its micro-batches. All ranks must be local.
WindowLoss read_metrics(Core& core);
// Is the loss of the program's fold_metrics divided by the weight?
bool divides_by_weight(const Plan& plan, Program program);
HostTensor read_tensor(Core& core, int rank, int32_t tensor);          // contiguous state of one rank, which must be local
const PlanParameter& find_parameter(const Plan& plan, int parameter);  // throws Error on an index outside the plan
// Of the parameters whose gradient was not finite in the last update, the name of the one that backward made first; empty: none.
std::string first_overflow(Core& core);
HostTensor read_gradient(Core& core, int parameter);  // throws Error for a frozen parameter; all ranks must be local

}  // namespace zeroplan
