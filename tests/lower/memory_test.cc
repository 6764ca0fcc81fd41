#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "passes/lower/plan_memory.h"
#include "runtime/plan/plan.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

int64_t rounded(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

std::vector<MemoryRequest> random_requests(std::mt19937& random, int count, int steps) {
  std::vector<MemoryRequest> requests;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % steps), length = static_cast<int>(random() % (random() % 3 == 0 ? steps : 4));
    requests.push_back({1 + static_cast<int64_t>(random() % 5000), first, std::min(steps - 1, first + length)});
  }
  return requests;
}

void expect_disjoint(const std::vector<MemoryRequest>& requests, const MemoryPlan& plan) {
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0);
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = requests[i].first <= requests[j].last && requests[j].first <= requests[i].last;
      const bool apart = plan.offsets[i] + requests[i].bytes <= plan.offsets[j] || plan.offsets[j] + requests[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

int64_t live_peak(const std::vector<MemoryRequest>& requests, int steps) {
  int64_t peak = 0;
  for (int step = 0; step < steps; ++step) {
    int64_t live = 0;
    for (const MemoryRequest& r : requests)
      if (r.first <= step && step <= r.last) live += rounded(r.bytes);
    peak = std::max(peak, live);
  }
  return peak;
}

// Smallest arena over all orders of lowest-fit placement.
int64_t best_of_all_orders(const std::vector<MemoryRequest>& requests) {
  std::vector<int> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<std::array<int64_t, 2>> placed(requests.size(), {-1, -1});
    int64_t top = 0;
    for (int i : order) {
      int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < requests.size(); ++j) {
          if (placed[j][0] < 0 || requests[j].first > requests[i].last || requests[j].last < requests[i].first) continue;
          if (offset < placed[j][1] && placed[j][0] < offset + rounded(requests[i].bytes)) {
            offset = placed[j][1];
            moved = true;
          }
        }
      }
      placed[i] = {offset, offset + rounded(requests[i].bytes)};
      top = std::max(top, placed[i][1]);
    }
    best = std::min(best, top);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(PlanMemory, StoragesThatLiveTogetherDoNotOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const int steps = 5 + round;
    const std::vector<MemoryRequest> requests = random_requests(random, 10 + 8 * round, steps);
    const MemoryPlan plan = plan_memory(requests);
    expect_disjoint(requests, plan);
    EXPECT_EQ(plan.lower_bound, live_peak(requests, steps));
    EXPECT_GE(plan.bytes, plan.lower_bound);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.15 * static_cast<double>(plan.lower_bound)) << round;
  }
}

TEST(PlanMemory, SmallCasesComeCloseToTheBest) {
  std::mt19937 random(2);
  int optimal = 0;
  for (int round = 0; round < 40; ++round) {
    const std::vector<MemoryRequest> requests = random_requests(random, 6, 8);
    const int64_t best = best_of_all_orders(requests), planned = plan_memory(requests).bytes;
    EXPECT_GE(planned, live_peak(requests, 8));
    EXPECT_LE(static_cast<double>(planned), 1.2 * static_cast<double>(best));
    optimal += planned <= best;
  }
  EXPECT_GE(optimal, 36);
}

// n layers forward and backward, and the update: activations kept for the backward, scratch, a reduce buffer of two shards, and the
// shard from there to the layer's update; a loss head in between.
std::vector<MemoryRequest> window(int n, int64_t kept, int64_t scratch, int64_t shard, int64_t head) {
  const int back = 2 * n + 2;
  std::vector<MemoryRequest> requests = {{head, 2 * n, back}, {head / 2, 2 * n, back + 2 * n}};
  for (int i = 0; i < n; ++i) {
    const int again = back + 2 * (n - 1 - i);
    requests.push_back({kept, 2 * i, again + 1});
    requests.push_back({scratch, 2 * i, 2 * i + 1});
    requests.push_back({scratch, again, again + 1});
    requests.push_back({2 * shard, again, again + 1});
    requests.push_back({shard, again + 1, back + 2 * n + i});
  }
  return requests;
}

TEST(PlanMemory, CarriedGradientsFitWithoutLoss) {
  for (int n : {4, 8, 12})
    for (int64_t kept : {128000, 384000})
      for (int64_t scratch : {64000, 320000})
        for (int64_t shard : {38400, 89600, 192000})
          for (int64_t head : {640000, 2560000}) {
            const std::vector<MemoryRequest> requests = window(n, kept, scratch, shard, head);
            const MemoryPlan plan = plan_memory(requests);
            expect_disjoint(requests, plan);
            EXPECT_LE(static_cast<double>(plan.bytes), 1.02 * static_cast<double>(plan.lower_bound))
                << n << " " << kept << " " << scratch << " " << shard << " " << head;
          }
}

TEST(PlanMemory, NothingToPlace) { EXPECT_EQ(plan_memory({}).bytes, 0); }

TEST(PlanMemory, TransientArenaIsWithinFivePercentOfItsLowerBound) {
  for (int stage : {0, 3})
    for (int blocks : {2, 6, 12}) {
      const Plan plan = compile_graph(residual(blocks, 32, 64, 500), options_of(2, stage));
      const int64_t bound = *std::max_element(plan.transient_lower_bound.begin(), plan.transient_lower_bound.end());
      EXPECT_LE(static_cast<double>(plan.arena_bytes[1]), 1.05 * static_cast<double>(bound));
    }
}

// One round per step: a gradient shard takes bytes that activations have left. Several: it is state.
TEST(PlanMemory, CarriedGradientsShareBytesWithActivations) {
  for (int stage : {0, 1, 2, 3}) {
    CompileOptions options = options_of(2, stage);
    const Plan carried = compile_graph(residual(6, 256, 32, 500), options);
    options.batch = options.micro_batches = 4;
    const Plan kept = compile_graph(residual(6, 256, 32, 500), options);
    int64_t shards = 0;
    for (const PlanUnit& unit : carried.units) {
      EXPECT_EQ(carried.tensors[unit.gradient_tensor].arena, Arena::transient);
      shards += rounded(tensor_span_bytes(carried.tensors[unit.gradient_tensor]));
    }
    for (const PlanUnit& unit : kept.units) EXPECT_EQ(kept.tensors[unit.gradient_tensor].arena, Arena::state);
    EXPECT_LT(carried.arena_bytes[0], kept.arena_bytes[0] - shards / 2);
    const int64_t bound = *std::max_element(carried.transient_lower_bound.begin(), carried.transient_lower_bound.end());
    EXPECT_LE(static_cast<double>(carried.arena_bytes[1]), 1.01 * static_cast<double>(bound));
    EXPECT_LT(carried.arena_bytes[0] + carried.arena_bytes[1], kept.arena_bytes[0] + kept.arena_bytes[1]);
    for (const Step& step : find_program(carried, Program::load)->steps)
      for (const Operand& o : step.outputs) EXPECT_EQ(carried.tensors[o.tensor].arena, Arena::state);
  }
}

}  // namespace
}  // namespace zeroplan::test
