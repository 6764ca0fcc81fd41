#pragma once
// Ranks that have a GPU each, in one process or in several, by NCCL.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/reduce_mode.h"
#include "runtime/comm/communicator.h"

namespace zeroplan {

struct NcclSetup {
  int size = 0;                                  // ranks of all processes
  std::vector<int> ranks;                        // those of this process
  std::vector<std::shared_ptr<Device>> devices;  // theirs, in the same order
  std::string id;                                // new_nccl_id() of one process
  std::chrono::milliseconds deadline{};
  int64_t receive_bytes = 0;  // on each device, for what the others send to a reduction
  ReduceMode mode = ReduceMode::ordered;
  // Tells the ranks of other processes that this one has failed, in words that name it; may be empty, must be safe from any thread.
  std::function<void(const std::string& words)> tell_peers;
  std::function<void()> check_peers;  // throws Error where a rank of another process has failed; may be empty, must be safe from any thread
};

// "2.28.9". Throws Error where the library is older than what this program needs.
std::string nccl_version();
// What the ranks of one communicator find each other by: bytes, to be given to all.
std::string new_nccl_id();

// Index as in setup.ranks. Returns when all ranks of all processes have come; an operation that the ranks' streams do not end within
// `deadline` of coming to it fails. Sums are made in rank order and have the bits of every other communicator; where the mode is fast,
// reductions to which all ranks contribute f32, f64 or i64 are made by ncclReduceScatter and then added to the accumulator.
std::vector<std::unique_ptr<Communicator>> make_nccl_communicators(const NcclSetup& setup);

}  // namespace zeroplan
