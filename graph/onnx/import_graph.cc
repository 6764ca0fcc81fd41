#include "graph/onnx/import_graph.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/onnx/bind_dims.h"
#include "graph/onnx/compact.h"
#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/loss.h"
#include "graph/onnx/more_samples.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

// Keeps each line once.
void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& line : from)
    if (std::find(to.begin(), to.end(), line) == to.end()) to.push_back(line);
}

class Import {
 public:
  Import(const OnnxModel& model, WeightFiles& files, const ImportOptions& options) : options_(options), files_(files), model_(model) {}

  ImportedModel run() {
    decode();
    return std::move(out_);
  }

  ImportedModel inspect(std::vector<std::string>& problems) {
    try {
      decode();
    } catch (const ErrorList& list) {
      problems = list.problems();
    } catch (const Error& error) {
      problems = {error.message()};
    }
    return std::move(out_);
  }

 private:
  void decode() {
    fill_header();
    std::vector<std::string> problems;
    const LossSpec spec = forward_only() ? LossSpec{} : find_loss(problems);
    const std::set<std::string> wanted = wanted_values(spec, problems);
    dims_ = bind_dims(model_.graph, options_, spec.labels);
    append(problems, dims_.problems);
    RolePlan roles = plan_roles(model_, files_, options_, wanted);
    roles.report.insert(roles.report.begin(), model_.training.report.begin(), model_.training.report.end());
    out_.roles = roles.rows;
    append(problems, roles.problems);
    out_.report = roles.report;
    out_.graph.parameters = roles.parameters;
    GraphDecoder decoder(model_, files_, roles, options_, out_.graph);
    decoder.add_inputs(dims_, options_.bind);
    if (dims_.problems.empty()) add_inputs();
    if (!problems.empty()) refuse(problems, roles, wanted);
    decoder.decode(wanted);
    if (!decoder.problems().empty()) refuse(decoder.problems(), roles, wanted);
    forward_only() ? set_outputs(decoder) : set_loss(spec, roles, decoder);
    finish(roles, decoder);
  }

  bool forward_only() const { return !options_.outputs.empty(); }

  std::set<std::string> wanted_values(const LossSpec& spec, std::vector<std::string>& problems) const {
    if (!forward_only()) return problems.empty() ? std::set{spec.output} : floating_outputs();
    std::set<std::string> known;
    for (const OnnxValueInfo& output : model_.graph.outputs) known.insert(output.name);
    for (const std::string& name : options_.outputs)
      if (!known.count(name)) problems.push_back(fmt::format("the model has no output '{}'; it has {}", name, fmt::join(known, ", ")));
    return {options_.outputs.begin(), options_.outputs.end()};
  }

  void set_outputs(GraphDecoder& decoder) {
    for (const std::string& name : options_.outputs) {
      const ValueId id = decoder.find(name);
      if (id == kNone) throw Error(fmt::format("output '{}' is not computed by the model", name));
      out_.graph.outputs[name] = id;
    }
    const std::vector<SampleAxis> lie = find_sample_axes(out_.graph, sample_axes(decoder, dims_));
    for (const OnnxValueInfo& info : model_.graph.outputs) {
      const auto wanted = out_.graph.outputs.find(info.name);
      if (wanted == out_.graph.outputs.end()) continue;
      const SampleAxis& place = lie[wanted->second];
      const bool along = place.kind == SampleAxis::Kind::axis && place.stride == 1;
      out_.outputs.push_back({info.name, kNone, along ? place.axis : -1, info.type});
    }
    for (Parameter& p : out_.graph.parameters) p.trainable = false;
  }

  // Without one, what can be said of the rest of the model is still said.
  LossSpec find_loss(std::vector<std::string>& problems) const {
    try {
      return parse_loss(options_.loss.empty() ? model_.training.loss : options_.loss, model_.graph);
    } catch (const Error& error) {
      problems = {error.message()};
      return {};
    }
  }

  std::set<std::string> floating_outputs() const {
    std::set<std::string> names;
    for (const OnnxValueInfo& output : model_.graph.outputs) {
      const std::optional<DType> dtype = graph_dtype(output.type, DType::f32);
      if (dtype && is_floating(*dtype)) names.insert(output.name);
    }
    return names;
  }

  // Those of the graph, as they are before the ones that the loss does not need are dropped.
  void add_inputs() {
    out_.inputs.clear();
    for (ValueId id : out_.graph.inputs) out_.inputs.push_back({out_.graph.value(id).name, id, axis_of(out_.graph.value(id).name)});
  }

  [[noreturn]] void refuse(const std::vector<std::string>& problems) const {
    throw ErrorList(fmt::format("model '{}' cannot be trained as it is:", model_.path), problems);
  }

  // With the unsupported nodes that were not reached because of the problems.
  [[noreturn]] void refuse(std::vector<std::string> problems, const RolePlan& roles, const std::set<std::string>& wanted) const {
    append(problems, unsupported_nodes(model_, roles, wanted));
    refuse(problems);
  }

  void fill_header() {
    out_.model_path = model_.path;
    out_.model_digest = model_.digest;
    out_.producer = model_.producer;
    out_.opset = model_.opset;
    out_.decoded_opset = model_.decoded_opset;
    out_.loss_candidates = list_loss_candidates(model_.graph);
  }

  void set_loss(const LossSpec& spec, const RolePlan& roles, GraphDecoder& decoder) {
    const ValueId output = decoder.find(spec.output);
    if (output == kNone) throw Error(fmt::format("output '{}' is not computed by the model", spec.output));
    const std::map<ValueId, int> axes = sample_axes(decoder, dims_);
    const std::vector<SampleAxis> once = find_sample_axes(out_.graph, axes);
    check_apart(out_.graph, once[output], options_.micro_batches);
    MoreSamples more{once[output], {}};
    if (options_.micro_batches > 1 && !dims_.sample_symbol.empty() && dims_.samples > 0)
      more = read_more_samples({model_, files_, roles, options_, spec, dims_.sample_symbol}, {out_.graph, output, once, dims_.samples});
    decoder.build().set_origin("loss");
    if (const Value& value = out_.graph.value(output);
        spec.kind == LossSpec::Kind::output && (!is_floating(value.dtype) || elements(value.shape) != 1))
      throw Error(fmt::format(
          "output '{0}' is {1} of shape {2}; a loss is one floating-point number: give it, or have one built over the output, with "
          "--loss 'softmax_cross_entropy({0}, labels)' or --loss 'mse({0}, target)'",
          spec.output, type_name(value.dtype), to_string(value.shape)));
    if (spec.kind == LossSpec::Kind::output) {
      out_.graph.loss = attach_loss(decoder.build(), output, options_.micro_batches, axes, more.twice);
      return;
    }
    const ValueId labels = label_input(spec, output, more.lie, decoder);
    out_.graph.loss = build_loss(decoder.build(), spec, output, labels);
  }

  // The model's own input of that name, or a new one.
  ValueId label_input(const LossSpec& spec, ValueId scores, const SampleAxis& lie, GraphDecoder& decoder) {
    const bool classes = spec.kind == LossSpec::Kind::softmax_cross_entropy;
    const Shape shape = label_shape(spec, out_.graph.value(scores).shape);
    const int along = scores_axis(spec, scores, lie);
    const ValueId known = decoder.find(spec.labels);
    if (known != kNone) {
      const Value& value = out_.graph.value(known);
      if (value.shape != shape || is_floating(value.dtype) == classes)
        throw Error(fmt::format("--loss: '{}' is {} of shape {}, but the loss needs {} of shape {}", spec.labels, type_name(value.dtype),
                                to_string(value.shape), classes ? "integers" : "floating-point values", to_string(shape)));
      check_along(spec, axis_of(spec.labels), along);
      return known;
    }
    if (!is_floating(out_.graph.value(scores).dtype))
      throw Error(fmt::format("--loss: output '{}' holds no floating-point values", spec.output));
    Value value;
    value.name = spec.labels;
    value.dtype = classes ? DType::i64 : options_.precision;
    value.shape = shape;
    value.kind = ValueKind::input;
    const ValueId id = out_.graph.add_value(std::move(value));
    out_.graph.inputs.push_back(id);
    dims_.inputs.push_back({spec.labels, 0, shape, label_axis(spec, shape, along)});
    return id;
  }

  // The axis of the labels along which the scores have their samples; -1: not known.
  int scores_axis(const LossSpec& spec, ValueId scores, const SampleAxis& lie) const {
    if (lie.kind == SampleAxis::Kind::folded && options_.micro_batches > 1)
      throw Error(
          fmt::format("--loss: output '{}' is made of all samples at once, so that {} micro-batches would not give the result of the "
                      "whole batch; use one micro-batch",
                      spec.output, options_.micro_batches));
    if (lie.kind != SampleAxis::Kind::axis || lie.stride != 1) return -1;
    if (spec.kind == LossSpec::Kind::mse) return lie.axis;
    const int64_t classes = normalize_axis(spec.axis, static_cast<int64_t>(out_.graph.value(scores).shape.size()));
    if (classes == lie.axis) throw Error(fmt::format("--loss: axis {} of output '{}' counts samples, not classes", lie.axis, spec.output));
    return lie.axis - (classes < lie.axis);
  }

  int label_axis(const LossSpec& spec, const Shape& shape, int along) const {
    const auto stated = options_.sample_axes.find(spec.labels);
    const int axis = stated != options_.sample_axes.end() ? stated->second : dims_.samples == 0 ? -1 : along >= 0 ? along : 0;
    if (axis < 0) return axis;
    check_along(spec, axis, along);
    if (axis < static_cast<int>(shape.size()) && (dims_.samples == 0 || shape[axis] == dims_.samples)) return axis;
    throw Error(
        fmt::format("--loss: labels '{}' have shape {}, whose axis {} is not the {} samples of a micro-batch; state --sample-axis {}=AXIS",
                    spec.labels, to_string(shape), axis, dims_.samples, spec.labels));
  }

  static void check_along(const LossSpec& spec, int axis, int along) {
    if (along >= 0 && axis >= 0 && axis != along)
      throw Error(
          fmt::format("--loss: the samples of '{}' are on its axis {}, but those of output '{}' ask for axis {}; state --sample-axis "
                      "{}={}",
                      spec.labels, axis, spec.output, along, spec.labels, along));
  }

  void finish(RolePlan& roles, GraphDecoder& decoder) {
    Graph& graph = out_.graph;
    add_inputs();
    compact(graph, decoder.names());
    std::vector<ImportedInput> kept;
    for (ImportedInput& input : out_.inputs) {
      input.value = graph.find(input.name);
      if (input.value != kNone && graph.value(input.value).kind == ValueKind::input)
        kept.push_back(input);
      else
        roles.report.push_back(fmt::format("input '{}' is not needed; no data is read for it", input.name));
    }
    out_.inputs = std::move(kept);
    for (ImportedOutput& output : out_.outputs) output.value = graph.outputs.at(output.name);
    if (!forward_only()) require_trainable(roles);
    find_limits(graph, out_.inputs);
    out_.roles = std::move(roles.rows);
    out_.report = std::move(roles.report);
    out_.baked_batch = dims_.baked_batch;
    report_rest();
  }

  void require_trainable(RolePlan& roles) {
    std::vector<std::string> problems = check_gradients(out_.graph, roles.report);
    const std::vector<Parameter>& parameters = out_.graph.parameters;
    if (std::none_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.trainable; }))
      problems.push_back(fmt::format("no parameter of the model leads to the loss: there is nothing to train; {}",
                                     model_.training.missing.empty() ? "name some with --train" : model_.training.missing));
    if (!problems.empty()) refuse(problems);
  }

  int axis_of(const std::string& name) const {
    for (const BoundInput& input : dims_.inputs)
      if (input.name == name) return input.sample_axis;
    return -1;
  }

  void report_rest() {
    for (const RoleRow& row : out_.roles)
      if (row.reason == "unused") out_.report.push_back(fmt::format("initializer '{}' is unused", row.initializer));
  }

  const ImportOptions& options_;
  WeightFiles& files_;
  const OnnxModel& model_;
  BoundDims dims_;
  ImportedModel out_;
};

}  // namespace

ImportedModel import_graph(const OnnxModel& model, WeightFiles& files, const ImportOptions& options) {
  return Import(model, files, options).run();
}

ImportedModel inspect_graph(const OnnxModel& model, WeightFiles& files, const ImportOptions& options, std::vector<std::string>& problems) {
  return Import(model, files, options).inspect(problems);
}

}  // namespace zeroplan
