#pragma once
// Does a model use the number of its samples? One reading of it is compared with another of twice the samples.
#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/sample_axes.h"

namespace zeroplan {

struct SampleReading {
  const Graph& graph;
  ValueId output;  // the loss, or the scores that it is made of
  const std::vector<SampleAxis>& axes;
  int64_t samples;  // two or more: with one, nodes are missing
};

// Throws Error naming the node where the number of samples enters what is computed of each sample or of weights alone, such as in
// (q / x.shape[0]).sum(). What is made of all samples together may use it: loss_factors judges that.
void check_sample_count(const SampleReading& once, const SampleReading& twice, int64_t micro_batches);

}  // namespace zeroplan
