#include "runtime/mpi/mpi_backend.h"

#include <fmt/format.h>

#include "base/device_kind.h"
#include "base/error.h"
#include "runtime/plan/reserve.h"

namespace zeroplan {

Backend make_mpi_backend(MpiJob& job, const Plan& plan, std::chrono::milliseconds deadline) {
  if (plan.header.ranks != job.size())
    throw Error(fmt::format("the plan is for {} ranks, but {} processes were started; compile with --ranks {}, or start {}",
                            plan.header.ranks, job.size(), job.size(), plan.header.ranks));
  if (plan.header.device != device_kind_name(DeviceKind::cpu))
    throw Error(
        fmt::format("the plan is for device {}, and ranks that are processes run on the CPU alone; compile it with --device cpu, or "
                    "start one process, whose ranks are threads",
                    plan.header.device));
  prepare_cpu_kernels();
  Backend backend;
  job.meet();  // here a rank waits for slower ones without taking the processor, which MPI_Comm_dup would
  auto gather = job.new_communicator(deadline, message_slot_bytes(plan, StreamKind::gather));
  auto reduce = job.new_communicator(deadline, message_slot_bytes(plan, StreamKind::reduce));
  backend.ranks.push_back({job.rank(), make_cpu_device(plan.header.threads), std::move(gather), std::move(reduce)});
  return backend;
}

}  // namespace zeroplan
