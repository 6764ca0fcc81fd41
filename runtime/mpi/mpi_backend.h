#pragma once
// One rank of the plan in this process, the others in the other processes of its MPI job.
#include "runtime/exec/backend.h"
#include "runtime/mpi/mpi_job.h"

namespace zeroplan {

// On the CPU collectives are MPI's. On GPUs, one for each process, they are NCCL's, and the job introduces the ranks to each other; there
// `local_rank`, the process's place among those of its machine, is the number of its GPU. Throws Error where the plan has another number of
// ranks than the job has processes. The job must outlive the backend.
Backend make_mpi_backend(MpiJob& job, const Plan& plan, std::chrono::milliseconds deadline, int local_rank);

}  // namespace zeroplan
