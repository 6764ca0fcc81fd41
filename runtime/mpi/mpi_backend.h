#pragma once
// One rank of the plan in this process, the others in the other processes of its MPI job, on the CPU.
#include "runtime/exec/backend.h"
#include "runtime/mpi/mpi_job.h"

namespace zeroplan {

// Throws Error where the plan has another number of ranks than the job has processes. The job must outlive the backend.
Backend make_mpi_backend(MpiJob& job, const Plan& plan, std::chrono::milliseconds deadline);

}  // namespace zeroplan
