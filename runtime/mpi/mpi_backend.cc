#include "runtime/mpi/mpi_backend.h"

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/plan/reserve.h"

namespace zeroplan {

Backend make_mpi_backend(MpiJob& job, const Plan& plan, std::chrono::milliseconds deadline, int local_rank) {
  if (plan.header.ranks != job.size())
    throw Error(fmt::format("the plan is for {} ranks, but {} processes were started; compile with --ranks {}, or start {}",
                            plan.header.ranks, job.size(), job.size(), plan.header.ranks));
  if (plan.header.device == DeviceKind::cuda)
    return make_cuda_process_backend(plan, deadline,
                                     {.rank = job.rank(),
                                      .size = job.size(),
                                      .local_rank = local_rank,
                                      .broadcast = [&job](const std::string& bytes) { return job.broadcast(bytes); },
                                      .gather = [&job](const std::string& bytes) { return job.gather(bytes); },
                                      .tell_peers = [&job](const std::string& words) { job.tell(words); },
                                      .check_peers = [&job] { job.listen(); }});
  prepare_cpu_kernels();
  Backend backend;
  job.meet();  // here a rank waits for slower ones without taking the processor, which MPI_Comm_dup would
  auto gather = job.new_communicator(deadline, message_slot_bytes(plan, StreamKind::gather));
  auto reduce = job.new_communicator(deadline, message_slot_bytes(plan, StreamKind::reduce));
  backend.ranks.push_back({job.rank(), make_cpu_device(plan.header.threads), std::move(gather), std::move(reduce)});
  return backend;
}

}  // namespace zeroplan
