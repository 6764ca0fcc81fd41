#include "passes/lower/plan_memory.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "passes/lower/placed_storages.h"
#include "runtime/plan/plan.h"

namespace zeroplan {
namespace {

class BestFit {
 public:
  // The smallest gap between storages of overlapping lifetime that holds the request, else the place behind them.
  int64_t place(const MemoryRequest& request) {
    const int64_t need = round_up(request.bytes, kArenaAlignment);
    int64_t end = 0, best = -1, best_gap = INT64_MAX;
    placed_.overlapping(request.first, request.last, [&](int64_t other_begin, int64_t other_end) {
      const int64_t gap = other_begin - end;
      if (gap >= need && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, other_end);
      return best_gap != need;
    });
    if (best < 0) best = end;
    placed_.insert(request.first, request.last, best, best + need);
    bytes_ = std::max(bytes_, best + need);
    return best;
  }
  int64_t bytes() const { return bytes_; }

 private:
  PlacedStorages placed_;
  int64_t bytes_ = 0;
};

std::vector<int64_t> live_bytes_by_step(const std::vector<MemoryRequest>& requests) {
  int steps = 0;
  for (const MemoryRequest& r : requests) steps = std::max(steps, r.last + 1);
  std::vector<int64_t> live(steps + 1, 0);
  for (const MemoryRequest& r : requests) {
    live[r.first] += round_up(r.bytes, kArenaAlignment);
    live[r.last + 1] -= round_up(r.bytes, kArenaAlignment);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

class Planner {
 public:
  explicit Planner(const std::vector<MemoryRequest>& requests) : requests_(requests) {
    plan_.offsets.assign(requests.size(), 0);
    plan_.bytes = INT64_MAX;
    plan_.lower_bound = lower_bound(requests);
  }

  MemoryPlan run() {
    try_order(sorted([](const MemoryRequest& a, const MemoryRequest& b) { return a.bytes > b.bytes; }));
    try_order(sorted([](const MemoryRequest& a, const MemoryRequest& b) { return a.last - a.first > b.last - b.first; }));
    try_order(sorted([](const MemoryRequest& a, const MemoryRequest& b) { return area(a) > area(b); }));
    try_order(sorted([](const MemoryRequest& a, const MemoryRequest& b) { return a.first < b.first; }));
    try_peak_first();
    improve();
    return std::move(plan_);
  }

 private:
  // What is live at the peak fits together without a gap, those that live longest at one end; then the others around it.
  void try_peak_first() {
    const std::vector<int64_t> live = live_bytes_by_step(requests_);
    const int peak = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
    const auto before = [&](const MemoryRequest& a, const MemoryRequest& b, bool by_size) {
      const bool a_first = a.first <= peak && peak <= a.last, b_first = b.first <= peak && peak <= b.last;
      if (a_first != b_first) return a_first;
      return by_size && !a_first ? a.bytes > b.bytes : a.last > b.last;
    };
    try_order(sorted([&](const MemoryRequest& a, const MemoryRequest& b) { return before(a, b, true); }));
    try_order(sorted([&](const MemoryRequest& a, const MemoryRequest& b) { return before(a, b, false); }));
  }

  static double area(const MemoryRequest& r) { return static_cast<double>(r.bytes) * (r.last - r.first + 1); }

  bool done() const { return plan_.bytes == plan_.lower_bound; }

  template <typename Before>
  std::vector<int> sorted(Before before) const {
    std::vector<int> order(requests_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      if (before(requests_[a], requests_[b])) return true;
      if (before(requests_[b], requests_[a])) return false;
      return requests_[a].bytes > requests_[b].bytes;
    });
    return order;
  }

  void try_order(const std::vector<int>& order) {
    if (done()) return;
    BestFit arena;
    std::vector<int64_t> offsets(requests_.size());
    for (int i : order) offsets[i] = arena.place(requests_[i]);
    last_bytes_ = arena.bytes();
    last_offsets_ = offsets;
    if (arena.bytes() >= plan_.bytes) return;
    plan_.bytes = arena.bytes();
    plan_.offsets = std::move(offsets);
    best_order_ = order;
  }

  // Storages that end at the top of the arena are placed earlier in the next try. The effort is bounded by the number of pairs looked at.
  void improve() {
    const double pairs = static_cast<double>(requests_.size()) * static_cast<double>(requests_.size());
    const int tries = static_cast<int>(std::min(60.0, 2e8 / std::max(pairs, 1.0)));
    std::vector<int> order = best_order_;
    last_offsets_ = plan_.offsets;
    last_bytes_ = plan_.bytes;
    for (int i = 0; i < tries && !done(); ++i) {
      const auto at_top = [&](int r) { return last_offsets_[r] + round_up(requests_[r].bytes, kArenaAlignment) == last_bytes_; };
      std::stable_partition(order.begin(), order.end(), at_top);
      try_order(order);
    }
  }

  const std::vector<MemoryRequest>& requests_;
  MemoryPlan plan_;
  std::vector<int> best_order_;
  std::vector<int64_t> last_offsets_;
  int64_t last_bytes_ = 0;
};

}  // namespace

int64_t lower_bound(const std::vector<MemoryRequest>& requests) {
  const std::vector<int64_t> live = live_bytes_by_step(requests);
  return *std::max_element(live.begin(), live.end());
}

MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests) {
  if (requests.empty()) return {};
  return Planner(requests).run();
}

}  // namespace zeroplan
