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
#include "graph/onnx/import_loss.h"
#include "graph/onnx/loss.h"
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
    forward_only() ? set_outputs(roles, decoder) : set_loss(spec, roles, decoder);
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

  void set_outputs(const RolePlan& roles, GraphDecoder& decoder) {
    std::map<std::string, std::vector<std::string>> names;  // of one output: its own, or those of the items of a sequence
    for (const std::string& output : options_.outputs)
      for (const auto& [name, id] : decoder.find_all(output)) {
        if (id == kNone) throw Error(fmt::format("output '{}' is not computed by the model", name));
        out_.graph.outputs[name] = id;
        names[output].push_back(name);
      }
    const LossSpec none;
    const ModelSource source{model_, files_, roles, options_, none, dims_.sample_symbol};
    const std::map<std::string, OutputSamples> samples =
        find_output_samples(source, out_.graph, find_sample_axes(out_.graph, sample_axes(decoder, dims_)), dims_.samples);
    for (const OnnxValueInfo& info : model_.graph.outputs)
      for (const std::string& name : names[info.name]) {
        const OutputSamples& of = samples.at(name);
        out_.outputs.push_back({name, kNone, of.axis, info.item_type != 0 ? info.item_type : info.type, of.counted});
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
    for (ValueId id : out_.graph.inputs) {
      const std::string& name = out_.graph.value(id).name;
      ImportedInput input{.name = name, .value = id, .sample_axis = name == mask_ ? 0 : axis_of(name)};
      input.mask = name == mask_;
      out_.inputs.push_back(std::move(input));
    }
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
    LossImport loss({model_, files_, roles, options_, spec, dims_.sample_symbol}, dims_, decoder, out_.graph);
    loss.run();
    if (loss.mask() != kNone) mask_ = out_.graph.value(loss.mask()).name;
    report_.insert(report_.end(), loss.remarks().begin(), loss.remarks().end());
    if (!loss.unmasked().empty()) report_.push_back(loss.unmasked());
    labels_ = {spec.labels, loss.classes(), spec.ignore_index};
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
      else if (!input.mask)
        roles.report.push_back(fmt::format("input '{}' is not needed; no data is read for it", input.name));
    }
    out_.inputs = std::move(kept);
    for (ImportedOutput& output : out_.outputs) output.value = graph.outputs.at(output.name);
    if (!forward_only()) require_trainable(roles);
    find_limits(graph, labels_, out_.inputs);
    out_.roles = std::move(roles.rows);
    out_.report = std::move(roles.report);
    append(out_.report, report_);
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
    for (const OnnxValueInfo& input : model_.graph.inputs)
      if (input.optional && !options_.bind.count(input.name) && !bound_items(input, options_.bind))
        out_.report.push_back(fmt::format("input '{}' is optional and not bound: it is taken as absent", input.name));
    for (const RoleRow& row : out_.roles)
      if (row.reason == "unused") out_.report.push_back(fmt::format("initializer '{}' is unused", row.initializer));
  }

  const ImportOptions& options_;
  WeightFiles& files_;
  const OnnxModel& model_;
  BoundDims dims_;
  std::string mask_;  // the input that says which samples count
  LabelRange labels_;
  std::vector<std::string> report_;  // on the loss
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
