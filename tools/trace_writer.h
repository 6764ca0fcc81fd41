#pragma once
#include <string>
#include <vector>

#include "runtime/exec/executor.h"

namespace zeroplan {

// Measured events as a Chrome trace (chrome://tracing, Perfetto): a process per rank, a thread per stream, args.plan_op = program[index].
// Prints which of the run's `steps` optimizer steps are in it, and why not all; `wanted`: of --trace-steps, 0 where not given.
void write_trace(const std::string& path, const Plan& plan, const std::vector<TraceEvent>& events, int64_t steps, int64_t wanted);

}  // namespace zeroplan
