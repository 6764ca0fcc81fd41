#pragma once
#include <barrier>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_backend.h"

namespace zeroplan {

// Threads in place of processes: each makes its own backend, and they talk as those would over MPI.
struct Talk {
  explicit Talk(int ranks) : meet(ranks), said(ranks) {}
  std::barrier<> meet;
  std::vector<std::string> said;

  CudaJob job(int rank, int local_rank) {
    const int size = static_cast<int>(said.size());
    const auto gather = [this, rank](const std::string& bytes) {
      said[rank] = bytes;
      meet.arrive_and_wait();
      std::vector<std::string> all = rank == 0 ? said : std::vector<std::string>();
      meet.arrive_and_wait();
      return all;
    };
    const auto broadcast = [this, rank](const std::string& bytes) {
      if (rank == 0) said[0] = bytes;
      meet.arrive_and_wait();
      std::string first = said[0];
      meet.arrive_and_wait();
      return first;
    };
    return {rank, size, local_rank, broadcast, gather, nullptr};
  }
};

}  // namespace zeroplan
