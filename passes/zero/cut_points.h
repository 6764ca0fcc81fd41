#pragma once
// Places of the forward where few activation bytes cross: block borders.
#include <cstdint>
#include <utility>
#include <vector>

namespace zeroplan {

// One parameter as the cutter sees it: first use and bytes.
struct CutItem {
  int position = 0;
  int64_t bytes = 0;
};

// Ascending positions p such that a cut lies between p and p + 1. `items` ascend by position. A stretch whose items hold more than
// `target_bytes` is cut again at its own minima.
std::vector<int> cut_points(const std::vector<int64_t>& crossing, const std::vector<CutItem>& items, int64_t target_bytes);

}  // namespace zeroplan
