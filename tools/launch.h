#pragma once
// Which process of a job this is, as its launcher says it in the environment. No MPI call.
#include <optional>
#include <string>

namespace zeroplan {

struct Launch {
  int rank = 0;        // of this process, among `size`
  int size = 1;        // processes, one per rank of the plan
  int local_rank = 0;  // among those of this machine
  std::string by;      // "mpirun", "srun"
};

// nullopt: nobody launched this as one of several processes. Throws Error where the environment contradicts itself.
std::optional<Launch> find_launch();

}  // namespace zeroplan
