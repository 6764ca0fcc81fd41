#include <algorithm>

#include <fmt/format.h>

#include "api/batching.h"
#include "api/import_for.h"
#include "api/stated_run.h"
#include "api/zeroplan.h"
#include "base/error.h"

namespace zeroplan {
namespace {

ImportOptions import_options(const CompileOptions& options) {
  ImportOptions import;
  import.dims = options.dims;
  import.samples = options.samples_per_micro_batch();
  import.micro_batches = options.micro_batches;
  import.sample_axes = options.sample_axes;
  import.loss = options.loss;
  import.loss_model = options.loss_model;
  import.loss_map = options.loss_map;
  import.sample_weight = options.sample_weight;
  import.precision = options.wide_precision();
  import.train = options.train;
  import.freeze = options.freeze;
  import.tie = options.tie;
  import.untie = options.untie;
  import.train_bn = options.train_bn;
  import.eval_bn = options.eval_bn;
  import.sync_bn = options.sync_bn;
  import.bind = options.bind;
  import.dropout_masks = options.dropout_masks;
  import.outputs = options.outputs;
  import.inference = options.inference;
  return import;
}

// What the graph does not know of its inputs.
void describe_inputs(Plan& plan, const ImportedModel& model) {
  for (const ImportedInput& from : model.inputs) {
    const std::string& value = model.graph.value(from.value).name;
    const auto input = std::find_if(plan.inputs.begin(), plan.inputs.end(), [&](const PlanInput& i) { return i.name == value; });
    check(input != plan.inputs.end(), "every input of the model is one of the plan");
    input->name = from.name;
    input->sample_axis = from.sample_axis;
    input->limit = from.limit;
    input->label = from.label;
    input->ignored = from.ignored;
    input->has_ignored = from.has_ignored;
    input->mask = from.mask;
  }
}

// The model's own optimizer; its settings go into the plan for run_training.
void take_optimizer(const ModelFile& file, CompileOptions& options) {
  const StatedOptimizer* stated = options.model_optimizer ? file.stated_optimizer() : nullptr;
  if (!stated) return;
  const std::optional<OptimizerKind> kind = parse_optimizer(stated->kind);
  if (!kind) throw Error(stated->problem);
  options.optimizer = *kind;
  options.momentum = stated->momentum;
}

void describe_outputs(Plan& plan, const ImportedModel& model) {
  for (PlanOutput& output : plan.outputs)
    for (const ImportedOutput& from : model.outputs)
      if (from.name == output.name) output.sample_axis = from.sample_axis, output.type = from.type;
}

// The data says how many samples there are, where any are read; else the options must, and all are one piece.
void require_sample_count(const ImportedModel& model, bool stated) {
  const auto has_samples = [](const ImportedInput& input) { return input.sample_axis >= 0; };
  if (stated || std::any_of(model.inputs.begin(), model.inputs.end(), has_samples)) return;
  for (const ImportedOutput& output : model.outputs)
    if (output.counted)
      throw Error(fmt::format(
          "output '{}' is made of the number of samples, but no input that has samples is needed, so that no data says how many "
          "there are; state it (--batch N --micro-batches 1), or leave the output out",
          output.name));
}

void fill_header(Plan& plan, const ImportedModel& model, const CompileOptions& options) {
  plan.header.tool_version = version();
  plan.header.model_path = model.model_path;
  plan.header.model_digest = model.model_digest;
  plan.header.options = effective_options(options);
  plan.report_lines = model.report;
}

}  // namespace

ImportOptions settle_options(const ModelFile& file, CompileOptions& options) {
  check_options(options);
  take_optimizer(file, options);
  resolve_batch(options, file.peek(options.sample_axes, options.bind).baked_batch);
  return import_options(options);
}

Graph compile_until(const ModelFile& file, CompileOptions options, const std::string& stop_after, const PassObserver& observer) {
  Graph graph = file.decode(settle_options(file, options)).graph;
  run_pipeline(graph, options, observer, stop_after);
  return graph;
}

Plan compile(const ModelFile& file, CompileOptions options, const PassObserver& observer) {
  const bool batch_stated = options.batch > 0;
  const ImportedModel model = file.decode(settle_options(file, options));
  require_sample_count(model, batch_stated && options.micro_batches == 1);
  Graph graph = model.graph;
  run_pipeline(graph, options, observer);
  Plan plan = emit_plan(graph, options);
  describe_inputs(plan, model);
  describe_outputs(plan, model);
  fill_header(plan, model, options);
  if (options.model_optimizer && file.stated_optimizer()) keep_stated(*file.stated_optimizer(), plan);
  plan.header.digest = plan_digest(plan);
  require_verified(plan);
  return plan;
}

Plan compile(const std::string& model_path, CompileOptions options, const PassObserver& observer) {
  return compile(ModelFile(model_path), std::move(options), observer);
}

}  // namespace zeroplan
