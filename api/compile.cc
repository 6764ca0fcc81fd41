#include <fmt/format.h>

#include "api/batching.h"
#include "api/import_for.h"
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
  import.precision = options.precision;
  import.train = options.train;
  import.freeze = options.freeze;
  import.tie = options.tie;
  import.untie = options.untie;
  return import;
}

int32_t input_tensor(const Plan& plan, const std::string& name) {
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    if (plan.tensors[i].kind == TensorKind::input && plan.tensors[i].name == name) return static_cast<int32_t>(i);
  return kNone;
}

// Inputs in the order of the model; one that no step reads has no tensor and needs no data.
void fill_inputs(Plan& plan, const ImportedModel& model) {
  plan.inputs.clear();
  for (const ImportedInput& from : model.inputs) {
    const Value& value = model.graph.value(from.value);
    PlanInput input;
    input.name = from.name;
    input.dtype = value.dtype;
    input.shape = value.shape;
    input.sample_axis = from.sample_axis;
    input.tensor = input_tensor(plan, value.name);
    input.limit = from.limit;
    input.label = from.label;
    input.ignored = from.ignored;
    input.has_ignored = from.has_ignored;
    if (input.tensor != kNone) plan.inputs.push_back(std::move(input));
  }
}

void fill_header(Plan& plan, const ImportedModel& model, const CompileOptions& options) {
  plan.header.tool_version = version();
  plan.header.model_path = model.model_path;
  plan.header.model_digest = model.model_digest;
  plan.header.options = effective_options(options);
  plan.header.loss = model.graph.loss.description;
  plan.report_lines = model.report;
}

}  // namespace

ImportOptions settle_options(const std::string& model_path, CompileOptions& options) {
  check_options(options);
  resolve_batch(options, peek_model(model_path).baked_batch);
  return import_options(options);
}

Graph compile_until(const std::string& model_path, CompileOptions options, const std::string& stop_after, const PassObserver& observer) {
  Graph graph = import_model(model_path, settle_options(model_path, options)).graph;
  run_pipeline(graph, options, observer, stop_after);
  return graph;
}

Plan compile(const std::string& model_path, CompileOptions options, const PassObserver& observer) {
  ImportedModel model = import_model(model_path, settle_options(model_path, options));
  Graph graph = model.graph;
  run_pipeline(graph, options, observer);
  Plan plan = emit_plan(graph, options);
  fill_inputs(plan, model);
  fill_header(plan, model, options);
  plan.header.digest = plan_digest(plan);
  require_verified(plan);
  return plan;
}

}  // namespace zeroplan
