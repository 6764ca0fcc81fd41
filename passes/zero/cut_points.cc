#include "passes/zero/cut_points.h"

#include <algorithm>

namespace zeroplan {
namespace {

struct Stretch {
  size_t first = 0, last = 0;  // items
};

// Cuts inside [items[first].position, items[last].position] within 25 % of the smallest crossing there.
std::vector<int> cuts_of(const std::vector<int64_t>& crossing, const std::vector<CutItem>& items, Stretch stretch) {
  const int from = items[stretch.first].position, to = items[stretch.last].position;
  if (from >= to) return {};
  const int64_t least = *std::min_element(crossing.begin() + from, crossing.begin() + to);
  std::vector<int> cuts;
  for (int i = from; i < to; ++i)
    if (crossing[i] <= least + least / 4) cuts.push_back(i);
  return cuts;
}

int64_t bytes_of(const std::vector<CutItem>& items, Stretch stretch) {
  int64_t bytes = 0;
  for (size_t i = stretch.first; i <= stretch.last; ++i) bytes += items[i].bytes;
  return bytes;
}

// The stretch's items, split at the cuts.
std::vector<Stretch> split(const std::vector<CutItem>& items, Stretch stretch, const std::vector<int>& cuts) {
  std::vector<Stretch> parts;
  size_t first = stretch.first;
  for (size_t i = stretch.first; i < stretch.last; ++i) {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), items[i].position);
    if (cut == cuts.end() || *cut >= items[i + 1].position) continue;
    parts.push_back({first, i});
    first = i + 1;
  }
  parts.push_back({first, stretch.last});
  return parts;
}

}  // namespace

std::vector<int> cut_points(const std::vector<int64_t>& crossing, const std::vector<CutItem>& items, int64_t target_bytes) {
  std::vector<int> result;
  if (items.empty()) return result;
  std::vector<Stretch> open = {{0, items.size() - 1}};
  bool whole = true;  // the whole forward is always cut, later stretches only where they are too big
  while (!open.empty()) {
    const Stretch stretch = open.back();
    open.pop_back();
    if (!whole && bytes_of(items, stretch) <= target_bytes) continue;
    whole = false;
    const std::vector<int> cuts = cuts_of(crossing, items, stretch);
    if (cuts.empty()) continue;
    result.insert(result.end(), cuts.begin(), cuts.end());
    for (const Stretch& part : split(items, stretch, cuts)) open.push_back(part);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace zeroplan
