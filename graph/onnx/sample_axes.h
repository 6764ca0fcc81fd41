#pragma once
// Where the samples of a micro-batch lie in each value of a graph.
#include <cstdint>
#include <map>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

struct SampleAxis {
  enum class Kind : uint8_t {
    none,     // depends on no sample
    axis,     // element i along `axis` belongs to sample i / stride % samples
    folded,   // every element is made of all samples, each in the same way
    mixed,    // how the samples lie together matters: x - mean(x), x·xᵀ, a weight per place in the batch
    unknown,  // one sample tells too little
  };
  Kind kind = Kind::none;
  int axis = -1;
  int64_t stride = 1;
  NodeId met = kNone;  // mixed: the node where it began
};

// By value. `inputs`: sample axis of each input that has one; all have the same number of samples. One sample cannot show `mixed`,
// more than one never give `unknown`.
std::vector<SampleAxis> find_sample_axes(const Graph& graph, const std::map<ValueId, int>& inputs);

}  // namespace zeroplan
