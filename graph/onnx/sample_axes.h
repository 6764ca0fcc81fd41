#pragma once
// Where the samples of a micro-batch lie in each value of a graph.
#include <cstdint>
#include <map>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

struct SampleAxis {
  enum class Kind : uint8_t {
    none,    // depends on no sample
    axis,    // `axis` counts samples, slowest where it counts something else too
    folded,  // every element is made of all samples
    mixed,   // samples meet each other: x - mean(x), x·xᵀ
    unknown,
  };
  Kind kind = Kind::none;
  int axis = -1;
};

// By value. `inputs`: sample axis of each input that has one; all have the same number of samples. One sample cannot show `mixed`.
std::vector<SampleAxis> find_sample_axes(const Graph& graph, const std::map<ValueId, int>& inputs);

}  // namespace zeroplan
