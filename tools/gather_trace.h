#pragma once
#include <vector>

#include "runtime/exec/executor.h"
#include "runtime/mpi/mpi_job.h"

namespace zeroplan {

// What all ranks of the job have measured, by the clock of rank 0, up to the last step that all of them have; empty on the other ranks.
// `job`: nullptr where all ranks are in this process.
std::vector<TraceEvent> gather_trace(Executor& executor, MpiJob* job);

}  // namespace zeroplan
