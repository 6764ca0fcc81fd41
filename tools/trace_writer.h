#pragma once
#include <string>
#include <vector>

#include "runtime/exec/executor.h"

namespace zeroplan {

// Measured events as a Chrome trace (chrome://tracing, Perfetto): a process per rank, a thread per stream, args.plan_op = program[index].
void write_trace(const std::string& path, const Plan& plan, const std::vector<TraceEvent>& events);

}  // namespace zeroplan
