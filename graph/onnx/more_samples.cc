#include "graph/onnx/more_samples.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

class Reading {
 public:
  Reading(const ModelSource& source, int64_t samples)
      : samples_(samples), dims_(bind(source, samples)), decoder_(source.model, source.files, source.roles, source.options, graph_) {
    graph_.parameters = source.roles.parameters;
    decoder_.add_inputs(dims_, source.options.bind);
    decoder_.decode({source.spec.output});
    const std::vector<std::string> problems = decoder_.problems();
    output_ = problems.empty() ? decoder_.find(source.spec.output) : kNone;
    if (output_ == kNone)
      throw Error(
          fmt::format("{} micro-batches: the model cannot be read with {} samples, which tells whether it keeps them apart: {}; use "
                      "one micro-batch",
                      source.options.micro_batches, samples, problems.empty() ? "no output" : problems[0]));
    inputs_ = sample_axes(decoder_, dims_);
    axes_ = find_sample_axes(graph_, inputs_);
    check_apart(graph_, axes_[output_], source.options.micro_batches);
  }

  SampleReading view() const { return {graph_, output_, axes_, samples_}; }
  const SampleAxis& lie() const { return axes_[output_]; }
  std::vector<double> factors(bool whole) { return loss_factors(decoder_.build(), output_, inputs_, whole); }

 private:
  static BoundDims bind(const ModelSource& source, int64_t samples) {
    ImportOptions options = source.options;
    options.samples = samples;
    if (options.dims.count(source.sample_symbol)) options.dims[source.sample_symbol] = samples;
    return bind_dims(source.model.graph, options, source.spec.labels);
  }

  const int64_t samples_;
  const BoundDims dims_;
  Graph graph_;
  GraphDecoder decoder_;
  ValueId output_ = kNone;
  std::map<ValueId, int> inputs_;
  std::vector<SampleAxis> axes_;
};

}  // namespace

std::map<ValueId, int> sample_axes(GraphDecoder& decoder, const BoundDims& dims) {
  std::map<ValueId, int> axes;
  for (const BoundInput& input : dims.inputs)
    if (const ValueId id = decoder.find(input.name); id != kNone && input.sample_axis >= 0) axes[id] = input.sample_axis;
  return axes;
}

void check_apart(const Graph& graph, const SampleAxis& lie, int64_t micro_batches) {
  if (micro_batches <= 1 || lie.kind != SampleAxis::Kind::mixed) return;
  throw Error(
      fmt::format("node '{}' ({}) brings the samples of a batch together, so that {} micro-batches would not give the result of the whole "
                  "batch; use one micro-batch",
                  graph.nodes[lie.met].origin, op_name(graph.nodes[lie.met].op), micro_batches));
}

MoreSamples read_more_samples(const ModelSource& source, const SampleReading& once) {
  Reading twice(source, checked_mul(2, once.samples));
  if (once.samples > 1)
    check_sample_count(once, twice.view(), source.options.micro_batches);
  else
    check_sample_count(twice.view(), Reading(source, 4).view(), source.options.micro_batches);
  MoreSamples told{twice.lie(), {}};
  if (source.spec.kind == LossSpec::Kind::output) told.twice = {once.samples, twice.factors(source.options.micro_batches == 1)};
  return told;
}

}  // namespace zeroplan
