// Host programs over the kernels: two streams, a captured graph, four ranks.
#pragma once

#include <cstddef>
#include <vector>

namespace example {

// y = (a + b) + c, with the second sum on another stream. Without the event
// wait the program is wrong, on a device as in the emulation.
std::vector<float> two_streams(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c, bool with_wait);

// Captures fork, two branches and join, then replays it `replays` times on
// x <- ((x + one) + (x + one)), returning x.
std::vector<float> replay_graph(const std::vector<float>& start, int replays);

// Every rank contributes shards[rank]; returns each rank's gathered vector.
std::vector<std::vector<float>> all_gather(const std::vector<std::vector<float>>& shards);
// Every rank contributes a full vector; returns each rank's shard of the sum.
std::vector<std::vector<float>> reduce_scatter(const std::vector<std::vector<float>>& inputs);

}  // namespace example
