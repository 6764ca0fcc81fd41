#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/exec/backend.h"

namespace zeroplan {

// Throws Error where no GPU can be used: there is none, its driver is too old, or this program was built without CUDA.
void require_gpu();

// All ranks of the plan as threads of this process, spread over the GPUs that it sees in turn. Where each rank has one, collectives are
// NCCL's; else they are copies and sums by kernels, and the ranks may share one GPU. Throws Error before anything is allocated where the
// plan is for another device, the GPUs differ, cannot reach each other or are too small, or NCCL is too old.
Backend make_cuda_backend(const Plan& plan, std::chrono::milliseconds deadline);

// This process as one rank of a job, and how the processes talk before NCCL connects them: all make the same calls.
struct CudaJob {
  int rank = 0, size = 1;
  int local_rank = 0;                                                  // among the processes of this machine: the number of its GPU
  std::function<std::string(const std::string& bytes)> broadcast;      // what rank 0 gave
  std::function<std::vector<std::string>(const std::string&)> gather;  // on rank 0, by rank; empty on the others
  std::function<void(const std::string& words)> tell_peers;            // as NcclSetup has it, and the next one
  std::function<void()> check_peers;
};

// One rank of the plan, on a GPU of its own. Throws Error as the former; all processes alike where it is about several of them.
Backend make_cuda_process_backend(const Plan& plan, std::chrono::milliseconds deadline, const CudaJob& job);

}  // namespace zeroplan
