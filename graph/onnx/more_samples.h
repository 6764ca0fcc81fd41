#pragma once
// The same model with more samples than a micro-batch has: what that tells of how it treats them.
#include <map>
#include <string>
#include <vector>

#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/loss.h"
#include "graph/onnx/sample_count.h"

namespace zeroplan {

// All members must outlive the calls below.
struct ModelSource {
  const OnnxModel& model;
  WeightFiles& files;
  const RolePlan& roles;
  const ImportOptions& options;
  const LossSpec& spec;
  const std::string& sample_symbol;  // the dim that counts samples
};

struct MoreSamples {
  SampleAxis lie;  // of the samples in the output: two or more tell what one cannot
  TwiceTheSamples twice;
};

// Inputs that have a sample axis.
std::map<ValueId, int> sample_axes(GraphDecoder& decoder, const BoundDims& dims);
// Throws Error naming the node where samples meet and there is more than one micro-batch.
void check_apart(const Graph& graph, const SampleAxis& lie, int64_t micro_batches);
// For more than one micro-batch. Throws Error naming the node where the samples do not stay apart, or their number counts.
MoreSamples read_more_samples(const ModelSource& source, const SampleReading& once);

struct OutputSamples {
  int axis = -1;         // parts of a micro-batch each, put together along it, are the output of all samples; -1: they are not
  bool counted = false;  // made of no sample, but of their number
};
// Of each of the outputs of `graph`, read with `samples`. `lie`: find_sample_axes of the graph.
std::map<std::string, OutputSamples> find_output_samples(const ModelSource& source, const Graph& graph, const std::vector<SampleAxis>& lie,
                                                         int64_t samples);

}  // namespace zeroplan
