#pragma once
#include <chrono>

#include "runtime/exec/backend.h"

namespace zeroplan {

// All ranks of the plan as threads of this process, spread over the GPUs that it sees in turn: with one GPU they share it. Throws Error
// before anything is allocated where the plan is for another device, the GPUs differ, cannot reach each other or are too small.
Backend make_cuda_backend(const Plan& plan, std::chrono::milliseconds deadline);

}  // namespace zeroplan
