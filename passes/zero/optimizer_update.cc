#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "passes/edit/graph_edits.h"
#include "passes/passes.h"
#include "passes/zero/program_builder.h"
#include "passes/zero/unit_state.h"
#include "runtime/plan/report.h"

namespace zeroplan {
namespace {

std::vector<std::string> moment_names(const Unit& unit, const CompileOptions& options) {
  std::vector<std::string> names;
  if (has_master(unit)) names.push_back("master");
  if (options.optimizer != OptimizerKind::sgd)
    names.insert(names.end(), {"m", "v"});
  else if (options.momentum != 0)
    names.push_back("momentum");
  return names;
}

void add_moments(Graph& graph, const CompileOptions& options) {
  for (int32_t id = 0; id < static_cast<int32_t>(graph.units.size()); ++id) {
    if (!graph.units[id].trainable) continue;
    const Unit& unit = graph.units[id];
    const Shape shape = {unit.optimizer == Placement::sharded ? unit.shard_elements : unit.padded_elements};
    std::vector<ValueId> moments;
    for (const std::string& name : moment_names(unit, options))
      moments.push_back(add_state(graph, unit.name + "." + name, unit.gradient_dtype, shape, id));
    graph.units[id].moments = std::move(moments);
  }
}

// Program-wide state of training or evaluation: per-micro-batch losses, and what they fold into.
struct Metrics {
  ValueId metrics = kNone, report = kNone;
};

// The metrics state that record_loss of the program writes.
ValueId recorded_metrics(const Graph& graph, Program program) {
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::record_loss && node.program == program) return node.inputs[2];
  throw std::logic_error(fmt::format("program {} records no loss", program_name(program)));
}

Metrics add_metrics(Graph& graph, Program program, const std::string& report) {
  return {recorded_metrics(graph, program), add_state(graph, report, DType::f64, {kReportFields})};
}

// all_reduce(metrics) and fold_metrics: the start of `update`, and all of `eval_end`.
void fold_losses(ProgramBuilder& build, const Metrics& state, const Loss& loss) {
  build.change(build.node(OpKind::all_reduce, {state.metrics}), {state.metrics});
  Node fold = build.node(OpKind::fold_metrics, {build.now(state.metrics), state.report});
  if (loss.scale != kNone) fold.inputs.push_back(loss.scale);
  fold.attributes = {{Attr::value, int64_t{loss.weight != kNone}}};
  build.change(std::move(fold), {state.report, state.metrics});
}

// The unit's own steps of `update`: optimizer, and gathers where gradients or weights are replicated.
void update_unit(const Graph& graph, ProgramBuilder& build, int32_t id, const CompileOptions& options, ValueId report) {
  const Unit& unit = graph.units[id];
  const bool whole = unit.optimizer == Placement::replicated;
  if (whole) build.change(build.node(OpKind::gather_gradient, {unit.gradient_shard}, id), {unit.gradient_full});
  const ValueId gradient = whole ? unit.gradient_full : unit.gradient_shard;
  Node update = build.node(OpKind::optimizer_update, {unit.weights_state, build.now(gradient), build.now(report)}, id);
  update.inputs.insert(update.inputs.end(), unit.moments.begin(), unit.moments.end());
  update.attributes = {{Attr::optimizer, std::string(optimizer_name(options.optimizer))}};
  std::vector<ValueId> changed = {unit.weights_state};
  changed.insert(changed.end(), unit.moments.begin(), unit.moments.end());
  changed.push_back(gradient);
  build.change(std::move(update), changed);
  if (whole && !unit.carried) build.zero(unit.gradient_shard);
  const bool gather_weights = unit.weights == Placement::replicated && !whole;
  if (gather_weights) build.change(build.node(OpKind::gather_weights, {build.now(unit.weights_state)}, id), {unit.weights_state});
}

// The batch's statistics into the running ones, whole on every rank.
void fold_statistics(const Graph& graph, ProgramBuilder& build, ValueId report) {
  for (const BatchStatistics& s : graph.statistics) {
    const int32_t id = graph.values[s.running_mean].unit;
    const auto place_of = [&](ValueId leaf) {
      const auto& members = graph.units[id].parameters;
      return std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.parameter == graph.values[leaf].parameter; })
          ->offset;
    };
    const ValueId weights = graph.units[id].weights_state;
    Node fold = build.node(OpKind::fold_statistics, {build.now(weights), build.now(s.recorded), build.now(report)}, id);
    fold.attributes = {{Attr::starts, std::vector<int64_t>{place_of(s.running_mean), place_of(s.running_variance)}},
                       {Attr::momentum, s.momentum}};
    build.change(std::move(fold), {weights, s.recorded});
  }
}

// Limbs of the norm; with a loss scale also what counts overflows.
struct Norm {
  ValueId limbs = kNone, overflows = kNone;
};

Norm add_norm(Graph& graph) {
  const int64_t parameters = static_cast<int64_t>(graph.parameters.size());
  if (graph.loss.scale == kNone) return {add_state(graph, "norm_limbs", DType::i64, {kNormLimbs})};
  return {add_state(graph, "norm_limbs", DType::i64, {norm_elements(parameters)}),
          add_state(graph, "overflows", DType::i64, {overflow_elements(parameters)})};
}

void add_to_norm(const Graph& graph, ProgramBuilder& build, int32_t id, ValueId report, const Norm& norm) {
  const Unit& unit = graph.units[id];
  Node node = build.node(OpKind::grad_norm, {unit.gradient_shard, build.now(report), build.now(norm.limbs)}, id);
  std::vector<int64_t> counters;
  for (const UnitParameter& member : unit.parameters) counters.push_back(kNormLimbs + member.parameter);
  if (norm.overflows != kNone) node.attributes = {{Attr::starts, std::move(counters)}};
  build.change(std::move(node), {norm.limbs});
}

void fold_norm(const Graph& graph, ProgramBuilder& build, ValueId report, const Norm& norm) {
  build.change(build.node(OpKind::all_reduce, {build.now(norm.limbs)}), {norm.limbs});
  Node clip = build.node(OpKind::clip_factor, {build.now(norm.limbs), build.now(report)});
  std::vector<ValueId> changed = {report, norm.limbs};
  if (norm.overflows != kNone) {
    clip.inputs.insert(clip.inputs.end(), {graph.loss.scale, norm.overflows});
    changed.insert(changed.end(), {graph.loss.scale, norm.overflows});
  }
  build.change(std::move(clip), changed);
}

void build_update(Graph& graph, GraphEdits& edits, const CompileOptions& options, const Metrics& state, const Norm& norm) {
  ProgramBuilder build(graph, edits, Program::update);
  fold_losses(build, state, graph.loss);
  for (const BatchStatistics& s : graph.statistics) build.change(build.node(OpKind::all_reduce, {s.recorded}), {s.recorded});
  const int32_t units = static_cast<int32_t>(graph.units.size());
  for (int32_t id = 0; id < units; ++id)
    if (graph.units[id].trainable) add_to_norm(graph, build, id, state.report, norm);
  fold_norm(graph, build, state.report, norm);
  for (int32_t id = 0; id < units; ++id)
    if (graph.units[id].trainable) update_unit(graph, build, id, options, state.report);
  fold_statistics(graph, build, state.report);
  build.finish();
}

bool has_program(const Graph& graph, Program program) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.program == program; });
}

// A forward plan: nothing but load and save.
bool load_and_save(Graph& graph) {
  std::vector<ValueId> outputs;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::record_output) outputs.push_back(node.inputs[1]);
  GraphEdits edits(graph);
  build_load(graph, edits, outputs);
  build_save(graph, edits);
  return edits.apply();
}

}  // namespace

bool optimizer_update(Graph& graph, const CompileOptions& options) {
  if (options.forward_only()) return load_and_save(graph);
  if (graph.units.empty()) return false;
  add_moments(graph, options);
  GraphEdits edits(graph);
  const Metrics train = add_metrics(graph, Program::micro_step, "report");
  const Norm norm = add_norm(graph);
  std::vector<ValueId> zeroed = {train.metrics, train.report, norm.limbs};
  if (norm.overflows != kNone) zeroed.push_back(norm.overflows);
  build_update(graph, edits, options, train, norm);
  for (const BatchStatistics& s : graph.statistics) zeroed.push_back(s.recorded);
  if (has_program(graph, Program::eval_step)) {
    const Metrics eval = add_metrics(graph, Program::eval_step, "eval_report");
    zeroed.insert(zeroed.end(), {eval.metrics, eval.report});
    ProgramBuilder end(graph, edits, Program::eval_end);
    fold_losses(end, eval, graph.eval_loss);
    end.finish();
  }
  build_load(graph, edits, zeroed);
  build_save(graph, edits);
  edits.apply();
  return true;
}

}  // namespace zeroplan
