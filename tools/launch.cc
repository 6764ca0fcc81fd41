#include "tools/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

// Environment variables of one launcher.
struct Names {
  const char *by, *rank, *size, *local_rank;
};

// mpirun of Open MPI; srun of Slurm, whose SLURM_NTASKS alone is also set in a batch script that launches nothing.
constexpr Names kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

int number_of(const char* name, int least) {
  const char* text = std::getenv(name);
  int value = -1;
  const char* end = text ? text + std::strlen(text) : nullptr;
  if (!text) throw Error(fmt::format("the launcher has not set {}; start the processes with mpirun or srun", name));
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < least)
    throw Error(fmt::format("{} is '{}', which is no number from {} on", name, text, least));
  return value;
}

}  // namespace

std::optional<Launch> find_launch() {
  for (const Names& names : kLaunchers) {
    if (!std::getenv(names.rank) || !std::getenv(names.size)) continue;
    Launch launch{number_of(names.rank, 0), number_of(names.size, 1), number_of(names.local_rank, 0), names.by};
    if (launch.rank >= launch.size)
      throw Error(
          fmt::format("{} is {} and {} is {}: a rank must be below their number", names.rank, launch.rank, names.size, launch.size));
    if (launch.size > 1) return launch;
  }
  return std::nullopt;
}

}  // namespace zeroplan
