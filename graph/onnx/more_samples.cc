#include "graph/onnx/more_samples.h"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

class Reading {
 public:
  Reading(const ModelSource& source, int64_t samples, const std::set<std::string>& wanted)
      : source_(source),
        samples_(samples),
        dims_(bind(source, samples)),
        decoder_(source.model, source.files, source.roles, source.options, graph_) {
    graph_.parameters = source.roles.parameters;
    decoder_.add_inputs(dims_, source.options.bind);
    decoder_.decode(wanted);
    if (const std::vector<std::string> problems = decoder_.problems(); !problems.empty()) refuse(problems[0]);
    inputs_ = sample_axes(decoder_, dims_);
    axes_ = find_sample_axes(graph_, inputs_);
  }

  // What the loss is made of.
  SampleReading of_loss() {
    const ValueId output = decoder_.find(source_.spec.output);
    if (output == kNone) refuse("no output");
    check_apart(graph_, axes_[output], source_.options.micro_batches);
    return view(output);
  }
  // Values of the model's outputs, items of sequences by their own names.
  std::map<std::string, ValueId> outputs(const std::set<std::string>& wanted) {
    std::map<std::string, ValueId> ids;
    for (const std::string& name : wanted)
      for (const auto& [item, id] : decoder_.find_all(name))
        if (id != kNone) ids[item] = id;
    return ids;
  }
  SampleReading view(ValueId output) const { return {graph_, output, axes_, samples_}; }
  std::vector<double> factors(ValueId loss, bool whole) { return loss_factors(decoder_.build(), loss, inputs_, whole); }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(
        fmt::format("{} micro-batches: the model cannot be read with {} samples, which tells whether it keeps them apart: {}; use one "
                    "micro-batch",
                    source_.options.micro_batches, samples_, problem));
  }

  static BoundDims bind(const ModelSource& source, int64_t samples) {
    ImportOptions options = source.options;
    options.samples = samples;
    if (options.dims.count(source.sample_symbol)) options.dims[source.sample_symbol] = samples;
    return bind_dims(source.model.graph, options, source.spec.labels);
  }

  const ModelSource& source_;
  const int64_t samples_;
  const BoundDims dims_;
  Graph graph_;
  GraphDecoder decoder_;
  std::map<ValueId, int> inputs_;
  std::vector<SampleAxis> axes_;
};

// The axis that has the samples of a micro-batch one by one and nothing else; -1: none.
int own_axis(const SampleReading& reading) {
  const SampleAxis& lie = reading.axes[reading.output];
  const bool along = lie.kind == SampleAxis::Kind::axis && lie.stride == 1;
  return along && reading.graph.value(reading.output).shape[lie.axis] == reading.samples ? lie.axis : -1;
}

// Shapes alike but for the samples.
bool same_but_for(int axis, Shape once, const Shape& more) {
  if (axis < 0 || once.size() != more.size()) return axis < 0;
  once[axis] = more[axis];
  return once == more;
}

// Does the number of samples enter the value?
bool is_counted(const SampleReading& few, const SampleReading& many) {
  const Value &once = few.graph.value(few.output), &more = many.graph.value(many.output);
  if (few.axes[few.output].kind == SampleAxis::Kind::none && once.shape != more.shape) return true;
  if (once.kind == ValueKind::constant && more.kind == ValueKind::constant) return once.constant != more.constant;
  try {
    check_sample_count(few, many, 2);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// With more samples than a micro-batch has: only two or more tell where they lie.
class OutputReadings {
 public:
  OutputReadings(const ModelSource& source, int64_t samples, const std::set<std::string>& wanted)
      : low_(source, std::max<int64_t>(2, samples), wanted), high_(source, checked_mul(2, std::max<int64_t>(2, samples)), wanted) {
    low_outputs_ = low_.outputs(wanted);
    high_outputs_ = high_.outputs(wanted);
  }

  OutputSamples of(const std::string& name, const Shape& once) const {
    const auto low = low_outputs_.find(name), high = high_outputs_.find(name);
    if (low == low_outputs_.end() || high == high_outputs_.end()) return {-1, true};
    const SampleReading few = low_.view(low->second), many = high_.view(high->second);
    const bool counted = is_counted(few, many);
    const int axis = own_axis(few);
    if (axis < 0) return {-1, few.axes[few.output].kind == SampleAxis::Kind::none && counted};
    return {same_but_for(axis, once, few.graph.value(few.output).shape) && !counted ? axis : -1, false};
  }

 private:
  Reading low_, high_;
  std::map<std::string, ValueId> low_outputs_, high_outputs_;
};

// Empty: a model that runs with this number of samples alone.
std::unique_ptr<OutputReadings> read_outputs(const ModelSource& source, int64_t samples, const std::set<std::string>& wanted) {
  try {
    return std::make_unique<OutputReadings>(source, samples, wanted);
  } catch (const Error&) {
    return nullptr;
  }
}

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
  const std::set<std::string> wanted = {source.spec.output};
  Reading more(source, checked_mul(2, once.samples), wanted);
  const SampleReading twice = more.of_loss();
  if (once.samples > 1)
    check_sample_count(once, twice, source.options.micro_batches);
  else
    check_sample_count(twice, Reading(source, 4, wanted).of_loss(), source.options.micro_batches);
  MoreSamples told{twice.axes[twice.output], {}};
  if (source.spec.kind == LossSpec::Kind::output)
    told.twice = {once.samples, more.factors(twice.output, source.options.micro_batches == 1)};
  return told;
}

std::map<std::string, OutputSamples> find_output_samples(const ModelSource& source, const Graph& graph, const std::vector<SampleAxis>& lie,
                                                         int64_t samples) {
  const std::set<std::string> wanted(source.options.outputs.begin(), source.options.outputs.end());
  const std::unique_ptr<OutputReadings> more =
      source.sample_symbol.empty() || samples < 1 ? nullptr : read_outputs(source, samples, wanted);
  std::map<std::string, OutputSamples> found;
  for (const auto& [name, id] : graph.outputs)
    found[name] = more ? more->of(name, graph.value(id).shape) : OutputSamples{own_axis({graph, id, lie, samples}), false};
  return found;
}

}  // namespace zeroplan
