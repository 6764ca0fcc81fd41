#include "runtime/exec/core.h"
#include "runtime/exec/exchange.h"

namespace zeroplan {
namespace {

constexpr auto kBytes = static_cast<int64_t>(sizeof(RankTimes));

bool all_are_here(Core& core) { return core.local_ranks() == core.plan().header.ranks; }

RankTimes own_times(const Rank& rank) {
  RankTimes times{.step_ns = rank.step_ns, .exposed_ns = rank.exposed_ns, .data_ns = rank.data_ns, .high_water = rank.high_water};
  for (const Lane& lane : rank.lanes) times.compute_ns += lane.compute_ns;
  return times;
}

}  // namespace

void prepare_times(Rank& rank) {
  if (all_are_here(*rank.core)) return;
  rank.all_times.resize(static_cast<size_t>(rank.plan->header.ranks));
  rank.shared_times = rank.device->alloc(rank.plan->header.ranks * kBytes);
}

void share_times(Rank& rank) {
  if (all_are_here(*rank.core)) return;
  try {
    auto* all = static_cast<std::byte*>(rank.shared_times->data());
    rank.all_times[rank.index] = own_times(rank);
    exchange(rank, *rank.shared_times, rank.all_times.data(), rank.plan->header.ranks * kBytes,
             [&](Communicator& comm, Stream& stream) { comm.all_gather(all + rank.index * kBytes, all, kBytes, stream); });
  } catch (...) {
    rank.core->fail({.rank = rank.index,
                     .step = rank.scalars.step,
                     .micro_batch = rank.scalars.micro_batch,
                     .program = "after update",
                     .op = "all_gather of the times",
                     .unit = "none",
                     .parameters = "none"},
                    std::current_exception());
    throw Stopped{};
  }
}

RankTimes times_of(Core& core, int rank) {
  return all_are_here(core) ? own_times(core.local_rank(rank)) : core.local_rank(0).all_times[rank];
}

}  // namespace zeroplan
