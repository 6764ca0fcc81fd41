// Built where MPI is not.
#include "base/error.h"
#include "runtime/mpi/mpi_job.h"

namespace zeroplan {

std::unique_ptr<MpiJob> start_mpi() {
  throw Error(
      "this build has no MPI, so that ranks cannot be processes; install Open MPI (libopenmpi-dev, openmpi-bin) and build again, or start "
      "one process, whose ranks are threads, with --ranks");
}

}  // namespace zeroplan
