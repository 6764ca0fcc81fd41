#pragma once
// Offsets for storages with known lifetimes, so that those that live together do not overlap.
#include <cstdint>
#include <vector>

namespace zeroplan {

struct MemoryRequest {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps, both included
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // by request, multiples of kArenaAlignment
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // largest sum of live bytes, each storage rounded up to the alignment
};

int64_t lower_bound(const std::vector<MemoryRequest>& requests);
// Best fit in several orders; the smallest result is kept.
MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests);

}  // namespace zeroplan
