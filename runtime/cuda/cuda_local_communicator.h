#pragma once
// Ranks that are threads of one process, on one GPU or on several with peer access.
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace zeroplan {

// Index = rank; devices[r] is that of rank r. The ranks agree on each collective when they issue it, and their streams order the copies
// and sums by events; a rank that does not come within `deadline` is named.
std::vector<std::unique_ptr<Communicator>> make_cuda_local_communicators(const std::vector<std::shared_ptr<Device>>& devices,
                                                                         std::chrono::milliseconds deadline);

}  // namespace zeroplan
