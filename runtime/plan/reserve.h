#pragma once
// Memory of a run outside the plan's arenas.
#include <cstdint>

#include "runtime/plan/plan.h"

namespace zeroplan {

// The most that the process takes beyond its own start and the arenas, in bytes per rank: packing buffers of the matrix products on every
// thread, what the executor prepares for each step, and a rank's share of what the process has once (libraries' pages, the plan, its compilation).
int64_t reserve_bytes(const Plan& plan);

}  // namespace zeroplan
