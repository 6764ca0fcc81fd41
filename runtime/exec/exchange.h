#pragma once
// What the ranks tell each other between programs. Only runtime/exec includes this.
#include "runtime/exec/rank_state.h"

namespace zeroplan {

// `bytes` of the host at `data` through a collective in place: `memory` holds them for collective(communicator, stream), and what it leaves
// there comes back. Of the gather stream; done on return.
template <typename Collective>
void exchange(Rank& rank, DeviceMemory& memory, void* data, int64_t bytes, const Collective& collective) {
  Lane& lane = rank.lanes[static_cast<int>(StreamKind::gather)];
  rank.write(memory.data(), data, bytes);
  collective(*lane.comm, *lane.stream);
  lane.stream->synchronize();
  rank.read(memory.data(), data, bytes);
}

}  // namespace zeroplan
