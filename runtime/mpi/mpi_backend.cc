#include "runtime/mpi/mpi_backend.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

Backend make_mpi_backend(MpiJob& job, const Plan& plan, std::chrono::milliseconds deadline) {
  if (plan.header.ranks != job.size())
    throw Error(fmt::format("the plan is for {} ranks, but {} processes were started; compile with --ranks {}, or start {}",
                            plan.header.ranks, job.size(), job.size(), plan.header.ranks));
  prepare_cpu_kernels();
  Backend backend;
  auto gather = job.new_communicator(deadline, kMpiScratch), reduce = job.new_communicator(deadline, kMpiScratch);
  backend.ranks.push_back({job.rank(), make_cpu_device(plan.header.threads), std::move(gather), std::move(reduce)});
  return backend;
}

}  // namespace zeroplan
